# What the default view shows
06:45:39.665 -                       python3/683             gpu0  GPU opened: NVIDIA H200
06:45:39.803 -                       python3/683             gpu0  host memory +56.0 MiB, now 56.0 MiB
06:45:39.864 -                       python3/683             gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
06:45:39.880 -                       python3/683             gpu0  GPU memory +2.0 MiB, now 32.0 MiB
06:45:39.887 -                       python3/683             gpu0  GPU memory +70.0 MiB, now 102.0 MiB
06:45:39.890 -                       python3/683             gpu0  GPU memory +414.0 MiB, now 518.0 MiB
06:45:40.912 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:40.914 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:40.923 -                       python3/683             gpu0  module loaded: PTX by cuModuleLoadData from memory: the image was over the budget of all captures
06:45:40.935 -                       python3/683             gpu0  module loaded: PTX by cuModuleLoadData from memory: the image was over the budget of all captures
06:45:40.942 -                       python3/683             gpu0  GPU memory +2.0 MiB, now 550.0 MiB
06:45:41.030 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.031 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.032 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcudnn_engines_precompiled.so.9: the image was over the budget of all captures
06:45:41.041 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.056 -                       python3/683             gpu0  GPU memory -414.0 MiB, now 138.0 MiB
06:45:41.056 -                       python3/683             gpu0  GPU memory +504.0 MiB, now 642.0 MiB
06:45:41.058 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.076 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.078 -                       python3/683             gpu0  GPU memory +64.0 MiB, now 706.0 MiB
06:45:41.078 -                       python3/683             gpu0  GPU memory +32.0 MiB, now 738.0 MiB
06:45:41.081 -                       python3/683             gpu0  module loaded: elf by cuLibraryLoadData from memory: the image was over the budget of all captures
06:45:41.093 -                       python3/683             gpu0  module loaded: elf by cuLibraryLoadData from memory: the image was over the budget of all captures
06:45:41.109 -                       python3/683             gpu0  module loaded: elf by cuLibraryLoadData from memory: the image was over the budget of all captures
06:45:41.126 -                       python3/683             gpu0  module loaded: elf by cuLibraryLoadData from memory: the image was over the budget of all captures
06:45:41.132 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.133 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.134 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.138 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.157 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.168 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.174 -                       pt_autograd_0/683       gpu0  GPU memory +64.0 MiB, now 802.0 MiB
06:45:41.175 -                       pt_autograd_0/683       gpu0  GPU memory +32.0 MiB, now 834.0 MiB
06:45:41.176 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.196 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.197 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libcublasLt.so.13: the image was over the budget of all captures
06:45:41.234 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.255 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:41.268 -                       pt_autograd_0/683       gpu0  module loaded: PTX by cuModuleLoadData from memory: the image was over the budget of all captures
06:45:41.281 -                       pt_autograd_0/683       gpu0  module loaded: PTX by cuModuleLoadData from memory: the image was over the budget of all captures
06:45:41.295 -                       pt_autograd_0/683       gpu0  module loaded: fatbin by cuLibraryLoadData from libcudnn_engines_precompiled.so.9: the image was over the budget of all captures
06:45:41.297 -                       python3/683             gpu0  module loaded: fatbin by cuLibraryLoadData from libtorch_cuda.so: the image was over the budget of all captures
06:45:42.013 -                       pt_autograd_0/683       gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
06:45:42.013 -                       pt_autograd_0/683       gpu0  GPU memory -844.0 MiB (34 objects), now 0 B, peak 844.0 MiB
06:45:42.013 -                       pt_autograd_0/683       gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
06:45:42.013 -                       pt_autograd_0/683       gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
61 memory.allocated
3 memory.freed
78 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
29 module.load
18 sync.created

# Processes
pid 683: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 683: gpu memory: peak 884998144 bytes, in the end 0
pid 683: host memory: peak 73396224 bytes, in the end 0
pid 683: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
