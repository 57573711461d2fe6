// Where files are kept from one process to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace cosmati::library {

// COSMATI_CACHE_DIR, else $XDG_CACHE_HOME/cosmati, else $HOME/.cache/cosmati; empty where none is set or COSMATI_CACHE_DIR is
// empty. Nothing is made.
std::string cache_directory();

}  // namespace cosmati::library
