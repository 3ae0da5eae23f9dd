# What the default view shows
00:07:18.046 -                       illegal_access/1041     gpu0  GPU opened: NVIDIA H200
00:07:18.175 -                       illegal_access/1041     gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:18.242 -                       illegal_access/1041     gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:18.264 -                       illegal_access/1041     gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:18.273 -                       illegal_access/1041     gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:18.277 -                       illegal_access/1041     gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:18.428 -                       illegal_access/1041     gpu0  GPU fault: the program reads the error state (NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES)
00:07:18.429 -                       illegal_access/1041     gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:18.429 -                       illegal_access/1041     gpu0  GPU memory -520.0 MiB (18 objects), now 0 B, peak 520.0 MiB
00:07:18.429 -                       illegal_access/1041     gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:18.429 -                       illegal_access/1041     gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
2 client.closed
2 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.fault
1 gpu.opened
44 memory.allocated
2 memory.freed
58 memory.mapped
4 memory.pinned
1 memory.unpinned
18 sync.created

# Processes
pid 1041: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1041: gpu memory: peak 545259520 bytes, in the end 0
pid 1041: host memory: peak 73396224 bytes, in the end 0
pid 1041: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
