# SPDX-License-Identifier: Apache-2.0
"""NVML queries a monitoring agent makes: names, memory, utilization, clocks,
temperature, processes. Reads only. Needs libnvidia-ml.so.1 alone."""
import ctypes

nvml = ctypes.CDLL("libnvidia-ml.so.1")
handle = ctypes.c_void_p()
count = ctypes.c_uint()
text = ctypes.create_string_buffer(96)
number = ctypes.c_uint()
memory = (ctypes.c_ulonglong * 3)()
rates = (ctypes.c_uint * 2)()


def must(status):
    if status != 0:
        raise SystemExit(f"NVML gave {status}")


must(nvml.nvmlInit_v2())
must(nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)))
for index in range(count.value):
    must(nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)))
    must(nvml.nvmlDeviceGetName(handle, text, len(text)))
    must(nvml.nvmlDeviceGetMemoryInfo(handle, memory))
    must(nvml.nvmlDeviceGetUtilizationRates(handle, rates))
    must(nvml.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(number)))
    for clock in range(4):
        nvml.nvmlDeviceGetClockInfo(handle, clock, ctypes.byref(number))
    processes = ctypes.c_uint(0)
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(processes), None)
    nvml.nvmlDeviceGetPowerUsage(handle, ctypes.byref(number))
must(nvml.nvmlShutdown())
