# What the default view shows
06:45:21.640 -                       python3/529             gpu0  GPU opened: NVIDIA H200
06:45:21.915 -                       python3/529             gpu0  host memory +56.0 MiB, now 56.0 MiB
06:45:21.981 -                       python3/529             gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
06:45:22.004 -                       python3/529             gpu0  GPU memory +2.0 MiB, now 32.0 MiB
06:45:22.015 -                       python3/529             gpu0  GPU memory +70.0 MiB, now 102.0 MiB
06:45:22.018 -                       python3/529             gpu0  GPU memory +414.0 MiB, now 518.0 MiB
06:45:23.653 -                       python3/529             gpu0  module loaded: fill_kernel (sm_90 1 kernel, R b376fe7c57a5) by cuModuleLoadData from memory
06:45:24.024 -                       python3/529             gpu0  module loaded: add_kernel (sm_90 1 kernel, R c61bd9bcf505) by cuModuleLoadData from memory
06:45:24.647 -                       python3/529             gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
06:45:24.647 -                       python3/529             gpu0  GPU memory -520.0 MiB (18 objects), now 0 B, peak 520.0 MiB
06:45:24.647 -                       python3/529             gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
06:45:24.647 -                       python3/529             gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
44 memory.allocated
2 memory.freed
58 memory.mapped
4 memory.pinned
1 memory.unpinned
2 module.load
18 sync.created

# Processes
pid 529: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 529: gpu memory: peak 545259520 bytes, in the end 0
pid 529: host memory: peak 73396224 bytes, in the end 0
pid 529: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
