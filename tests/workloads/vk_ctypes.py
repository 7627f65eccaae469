"""vk_ctypes.py - a device and 64 KiB of its memory, by ctypes alone; says whether it got them"""
import ctypes
from ctypes import byref

vk = ctypes.CDLL("libvulkan.so.1")
Handle, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64


def made(number, *members):
    """a Vulkan structure: its sType, no pNext, and members that are (type, value) or 0 for a pointer to nothing"""
    members = [member or (Handle, None) for member in members]
    names = [("sType", u32), ("pNext", Handle)] + [(f"member{i}", kind) for i, (kind, _) in enumerate(members)]
    return type("Structure", (ctypes.Structure,), {"_fields_": names})(number, None, *(value for _, value in members))


instance, physical, device, memory, count, priority = Handle(), Handle(), Handle(), Handle(), u32(1), ctypes.c_float(1)
vk.vkCreateInstance(byref(made(1, (u32, 0), 0, (u32, 0), 0, (u32, 0), 0)), None, byref(instance))
vk.vkEnumeratePhysicalDevices(instance, byref(count), byref(physical))
queue = made(2, (u32, 0), (u32, 0), (u32, 1), (Handle, ctypes.addressof(priority)))
info = made(3, (u32, 0), (u32, 1), (Handle, ctypes.addressof(queue)), (u32, 0), 0, (u32, 0), 0, 0)
print(vk.vkCreateDevice(physical, byref(info), None, byref(device)))
print(vk.vkAllocateMemory(device, byref(made(5, (u64, 65536), (u32, 0))), None, byref(memory)))
vk.vkFreeMemory(device, memory, None)
vk.vkDestroyDevice(device, None)
vk.vkDestroyInstance(instance, None)
