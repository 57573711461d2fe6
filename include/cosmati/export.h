// COSMATI_API marks what the shared libraries show; everything else in them is hidden. COSMATI_HIDDEN hides a
// member of a class that is shown.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(__GNUC__)
#define COSMATI_API __attribute__((visibility("default")))
#define COSMATI_HIDDEN __attribute__((visibility("hidden")))
#else
#define COSMATI_API
#define COSMATI_HIDDEN
#endif
