# What the default view shows
00:07:16.261 -                       driver_api/982          gpu0  GPU opened: NVIDIA H200
00:07:16.522 -                       driver_api/982          gpu0  host memory +56.0 MiB, now 56.0 MiB
00:07:16.588 -                       driver_api/982          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
00:07:16.611 -                       driver_api/982          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
00:07:16.620 -                       driver_api/982          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
00:07:16.624 -                       driver_api/982          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
00:07:16.633 -                       driver_api/982          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
00:07:16.695 -                       driver_api/982          gpu0  host memory -56.0 MiB, now 4.0 MiB
00:07:16.696 -                       driver_api/982          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
00:07:16.697 -                       driver_api/982          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
00:07:16.698 -                       driver_api/982          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
00:07:16.699 -                       driver_api/982          gpu0  GPU memory -2.0 MiB, now 0 B, peak 520.0 MiB
00:07:16.700 -                       driver_api/982          gpu0  GPU closed

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
44 memory.freed
58 memory.mapped
4 memory.pinned
54 memory.unmapped
4 memory.unpinned
18 sync.created

# Processes
pid 982: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 982: gpu memory: peak 545259520 bytes, in the end 0
pid 982: host memory: peak 73396224 bytes, in the end 0
pid 982: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
