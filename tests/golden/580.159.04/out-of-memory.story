# What the default view shows
00:07:17.678 -                       out_of_memory/1027      gpu0  GPU opened: NVIDIA H200
00:07:17.803 -                       out_of_memory/1027      gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:17.863 -                       out_of_memory/1027      gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.884 -                       out_of_memory/1027      gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:17.893 -                       out_of_memory/1027      gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:17.897 -                       out_of_memory/1027      gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:17.902 -                       out_of_memory/1027      gpu0  GPU memory 140.7 GiB refused: NV_ERR_NO_MEMORY
00:07:17.905 -                       out_of_memory/1027      gpu0  GPU memory 140.7 GiB refused: NV_ERR_NO_MEMORY
00:07:17.906 -                       out_of_memory/1027      gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.906 -                       out_of_memory/1027      gpu0  GPU memory -518.0 MiB (17 objects), now 0 B, peak 520.0 MiB
00:07:17.906 -                       out_of_memory/1027      gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:17.906 -                       out_of_memory/1027      gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
2 client.closed
2 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
44 memory.allocated
3 memory.freed
58 memory.mapped
4 memory.pinned
2 memory.refused
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 1027: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1027: gpu memory: peak 545259520 bytes, in the end 0
pid 1027: host memory: peak 73396224 bytes, in the end 0
pid 1027: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
