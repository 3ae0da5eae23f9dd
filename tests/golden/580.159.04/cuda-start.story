# What the default view shows
02:02:03.133 -                       cuda_start/510          gpu0  GPU opened: NVIDIA H200
02:02:03.411 -                       cuda_start/510          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:03.485 -                       cuda_start/510          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:03.511 -                       cuda_start/510          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:03.521 -                       cuda_start/510          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:03.525 -                       cuda_start/510          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:03.528 -                       cuda_start/510          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:03.585 -                       cuda_start/510          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:03.586 -                       cuda_start/510          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:03.587 -                       cuda_start/510          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:03.588 -                       cuda_start/510          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:03.588 -                       cuda_start/510          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:03.589 -                       cuda_start/510          gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
2 client.closed
2 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
43 memory.allocated
43 memory.freed
57 memory.mapped
4 memory.pinned
53 memory.unmapped
4 memory.unpinned
18 sync.created

# Processes
pid 510: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 510: gpu memory: peak 543162368 bytes, in the end 0
pid 510: host memory: peak 73396224 bytes, in the end 0
pid 510: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
