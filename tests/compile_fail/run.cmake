# Compiles SOURCE with COMPILER for INCLUDE and GENERATED and holds what happens against the first line of the file: `// error: REGEX` must fail with a
# message that matches, `// compiles` must succeed.
# SPDX-License-Identifier: Apache-2.0
file(STRINGS ${SOURCE} first LIMIT_COUNT 1)
set(ENV{LC_ALL} C)
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${INCLUDE} -I${GENERATED} ${SOURCE} RESULT_VARIABLE result ERROR_VARIABLE messages)
if(first MATCHES "^// error: (.*)$")
  set(wanted "${CMAKE_MATCH_1}")
  if(result EQUAL 0)
    message(FATAL_ERROR "it compiles, but should fail with: ${wanted}")
  elseif(NOT messages MATCHES "${wanted}")
    message(FATAL_ERROR "it fails, but not with: ${wanted}\n${messages}")
  endif()
elseif(NOT result EQUAL 0)
  message(FATAL_ERROR "it should compile:\n${messages}")
endif()
