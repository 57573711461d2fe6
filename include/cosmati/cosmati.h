// Everything a program that embeds Cosmati includes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/device.h>
#include <cosmati/dsl.h>
#include <cosmati/dtype.h>
#include <cosmati/error.h>
#include <cosmati/launch.h>
#include <cosmati/log.h>
#include <cosmati/machine.h>
#include <cosmati/package.h>
#include <cosmati/program.h>
#include <cosmati/runtime.h>
#include <cosmati/tensor.h>
#include <cosmati/version.h>
