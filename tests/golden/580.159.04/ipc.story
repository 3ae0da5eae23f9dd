# What the default view shows
00:07:17.126 -                       ipc/1010                gpu0  GPU opened: NVIDIA H200
00:07:17.258 -                       ipc/1010                gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:17.317 -                       ipc/1010                gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.334 -                       ipc/1010                gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:17.340 -                       ipc/1010                gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:17.343 -                       ipc/1010                gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:17.345 -                       ipc/1010                gpu0  others may share 2.0 MiB NV01_MEMORY_LOCAL_USER 0x5c000096
00:07:17.350 -                       ipc/1011                gpu0  GPU opened: NVIDIA H200
00:07:17.386 -                       ipc/1011                gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:17.460 -                       ipc/1011                gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.487 -                       ipc/1011                gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:17.496 -                       ipc/1011                gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:17.500 -                       ipc/1011                gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:17.503 -                       ipc/1011                gpu0  shares 2.0 MiB NV01_MEMORY_LOCAL_USER of pid 1010 client 0xc1d0002c object 0x5c000096
00:07:17.503 -                       ipc/1011                gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.503 -                       ipc/1011                gpu0  GPU memory -518.0 MiB (17 objects), now 0 B, peak 518.0 MiB
00:07:17.503 -                       ipc/1011                gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:17.503 -                       ipc/1011                gpu0  GPU closed
00:07:17.567 -                       ipc/1010                gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:17.567 -                       ipc/1010                gpu0  GPU memory -518.0 MiB (17 objects), now 0 B, peak 520.0 MiB
00:07:17.567 -                       ipc/1010                gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
00:07:17.567 -                       ipc/1010                gpu0  GPU closed

# Events
40 channel.created
40 channel.destroyed
4 client.closed
4 client.created
2 context.created
2 context.destroyed
2 gpu.closed
2 gpu.opened
87 memory.allocated
5 memory.freed
116 memory.mapped
8 memory.pinned
2 memory.unmapped
2 memory.unpinned
1 share.duplicated
1 share.granted
36 sync.created

# Processes
pid 1010: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1010: gpu memory: peak 545259520 bytes, in the end 0
pid 1010: host memory: peak 73396224 bytes, in the end 0
pid 1010: pinned memory: peak 8388608 bytes, in the end 0
pid 1011: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1011: gpu memory: peak 543162368 bytes, in the end 0
pid 1011: host memory: peak 73396224 bytes, in the end 0
pid 1011: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
