# What the default view shows
00:07:34.662 -                       python/1122             gpu0  GPU opened: NVIDIA H200
00:07:34.900 -                       python/1122             gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:34.964 -                       python/1122             gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:34.986 -                       python/1122             gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:34.995 -                       python/1122             gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:34.999 -                       python/1122             gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:36.815 -                       python/1122             gpu0  GPU memory -414.0 MiB, now 108.0 MiB
00:07:36.815 -                       python/1122             gpu0  GPU memory +504.0 MiB, now 612.0 MiB
00:07:37.338 -                       python/1122             gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:37.338 -                       python/1122             gpu0  GPU memory -612.0 MiB (19 objects), now 0 B, peak 612.0 MiB
00:07:37.338 -                       python/1122             gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:37.338 -                       python/1122             gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
46 memory.allocated
3 memory.freed
63 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 1122: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1122: gpu memory: peak 641728512 bytes, in the end 0
pid 1122: host memory: peak 73396224 bytes, in the end 0
pid 1122: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
