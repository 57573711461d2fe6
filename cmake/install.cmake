# What `cmake --install` puts where. The tree may be moved afterwards: nothing in it names a path of the build.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cosmati)
install(TARGETS cosmati EXPORT cosmatiTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/cosmati DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES ${COSMATI_GENERATED}/cosmati/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cosmati)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET cosmati_tool)
  install(TARGETS cosmati_tool)
endif()

install(EXPORT cosmatiTargets NAMESPACE cosmati:: DESTINATION ${package_dir})
# Before 1.0 a minor version may change the API.
write_basic_package_version_file(${COSMATI_GENERATED}/cosmatiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/cosmatiConfig.cmake ${COSMATI_GENERATED}/cosmatiConfigVersion.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" up ${up})
file(CONFIGURE OUTPUT ${COSMATI_GENERATED}/cosmati.pc @ONLY CONTENT "prefix=\${pcfiledir}/@up@
Name: cosmati
Description: compiles and runs tile programs
Version: @PROJECT_VERSION@
Cflags: -I\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L\${prefix}/@CMAKE_INSTALL_LIBDIR@ -lcosmati
")
install(FILES ${COSMATI_GENERATED}/cosmati.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
