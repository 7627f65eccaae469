#include "bind.h"
const struct entry opencl_entries[] = { { 0 } };
