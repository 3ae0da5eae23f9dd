/* SPDX-License-Identifier: Apache-2.0 */
/* The layout test as a C compiler sees it. */
#include "layout.inc.h"
