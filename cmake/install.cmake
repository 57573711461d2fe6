# What `cmake --install` puts where. The tree may be moved afterwards: nothing in it names a path of the build. With
# `--component runtime` it is the library that opens packages, with the headers it needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cosmati)
set(runtime_headers device dtype error export launch log package tensor)
set(runtime_files include/cosmati/dtypes.def include/cosmati/errors.def ${COSMATI_GENERATED}/cosmati/version.h)
foreach(header ${runtime_headers})
  list(APPEND runtime_files include/cosmati/${header}.h)
endforeach()
install(FILES ${runtime_files} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cosmati COMPONENT runtime)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(FILES docs/language.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(TARGETS cosmati_runtime_only EXPORT cosmatiRuntimeTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        LIBRARY COMPONENT runtime NAMELINK_COMPONENT runtime)

install(TARGETS cosmati EXPORT cosmatiTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/cosmati DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
if(TARGET cosmati_tool)
  install(TARGETS cosmati_tool)
endif()

install(EXPORT cosmatiRuntimeTargets NAMESPACE cosmati:: DESTINATION ${package_dir} COMPONENT runtime)
install(EXPORT cosmatiTargets NAMESPACE cosmati:: DESTINATION ${package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${COSMATI_GENERATED}/cosmatiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/cosmatiConfig.cmake ${COSMATI_GENERATED}/cosmatiConfigVersion.cmake DESTINATION ${package_dir} COMPONENT runtime)

file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up ${up})
function(install_pkg_config name library description component)
  file(CONFIGURE OUTPUT ${COSMATI_GENERATED}/${name}.pc @ONLY CONTENT "prefix=\${pcfiledir}/@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
Cflags: -I\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L\${prefix}/@CMAKE_INSTALL_LIBDIR@ -l@library@
")
  install(FILES ${COSMATI_GENERATED}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
endfunction()
install_pkg_config(cosmati cosmati "compiles and runs tile programs" Unspecified)
install_pkg_config(cosmati-runtime cosmati_runtime "runs packages of compiled tile programs" runtime)
