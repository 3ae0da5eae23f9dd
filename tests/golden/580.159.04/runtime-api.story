# What the default view shows
00:07:16.773 -                       runtime_api/996         gpu0  GPU opened: NVIDIA H200
00:07:16.904 -                       runtime_api/996         gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:16.970 -                       runtime_api/996         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:16.992 -                       runtime_api/996         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:17.002 -                       runtime_api/996         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:17.005 -                       runtime_api/996         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:17.012 -                       runtime_api/996         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.012 -                       runtime_api/996         gpu0  GPU memory -520.0 MiB (18 objects), now 0 B, peak 522.0 MiB
00:07:17.012 -                       runtime_api/996         gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:17.012 -                       runtime_api/996         gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
2 client.closed
2 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
45 memory.allocated
3 memory.freed
60 memory.mapped
5 memory.pinned
2 memory.unmapped
2 memory.unpinned
18 sync.created

# Processes
pid 996: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 996: gpu memory: peak 547356672 bytes, in the end 0
pid 996: host memory: peak 73396224 bytes, in the end 0
pid 996: pinned memory: peak 10485760 bytes, in the end 0

# Objects left in the end
0
