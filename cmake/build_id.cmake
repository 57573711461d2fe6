# Writes a string literal, the hash of the files in SOURCE/src and SOURCE/include and of EXTRA, to OUT.
#   cmake -DSOURCE=... -DOUT=... -DEXTRA=... -P cmake/build_id.cmake
# SPDX-License-Identifier: Apache-2.0
file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/src/* ${SOURCE}/include/*)
list(SORT files)
set(text "${EXTRA}")
foreach(file ${files})
  file(SHA256 ${SOURCE}/${file} hash)
  string(APPEND text "${file} ${hash}\n")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 32 hash)
file(CONFIGURE OUTPUT ${OUT} CONTENT "\"${hash}\"\n")
