#include "bind.h"
const struct entry vulkan_entries[] = { { 0 } };
