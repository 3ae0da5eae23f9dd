# What the default view shows
02:02:18.647 -                       alloc_free/744          gpu0  GPU opened: NVIDIA H200
02:02:18.780 -                       alloc_free/744          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:18.848 -                       alloc_free/744          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:18.866 -                       alloc_free/744          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:18.874 -                       alloc_free/744          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:18.877 -                       alloc_free/744          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:19.068 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.071 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.107 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.109 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.145 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.147 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.177 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.179 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.211 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.213 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.244 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.246 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.284 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.286 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.330 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.333 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.375 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.377 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.421 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.424 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.461 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.464 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.498 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.500 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.531 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.533 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.568 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.570 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.606 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.608 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.639 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.641 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.672 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.674 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.705 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.707 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.738 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.740 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.777 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.779 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.809 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.811 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.840 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.842 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.871 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.873 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.902 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.904 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.933 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.935 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.965 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.967 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:19.996 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:19.998 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.027 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.029 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.058 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.060 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.090 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.092 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.122 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.124 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.154 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.156 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.186 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.188 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.222 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.224 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.269 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.271 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.317 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.319 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.360 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.362 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.407 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.409 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.454 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.457 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.504 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.506 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.552 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.555 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.600 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.602 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.643 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.645 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.690 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.692 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.739 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.741 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.790 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.792 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.840 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.842 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.889 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.891 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.936 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.939 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:20.985 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:20.987 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:21.034 -                       alloc_free/744          gpu0  pinned memory +64.0 MiB, now 72.0 MiB
02:02:21.037 -                       alloc_free/744          gpu0  pinned memory -64.0 MiB, now 8.0 MiB
02:02:21.047 -                       alloc_free/744          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:21.047 -                       alloc_free/744          gpu0  GPU memory -518.0 MiB (17 objects), now 0 B, peak 518.0 MiB
02:02:21.047 -                       alloc_free/744          gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
02:02:21.047 -                       alloc_free/744          gpu0  pinned memory -8.0 MiB (4 objects), now 0 B, peak 72.0 MiB
02:02:21.047 -                       alloc_free/744          gpu0  GPU closed

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
2 memory.freed
261 memory.mapped
208 memory.pinned
204 memory.unmapped
205 memory.unpinned
18 sync.created

# Processes
pid 744: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 744: gpu memory: peak 543162368 bytes, in the end 0
pid 744: host memory: peak 73396224 bytes, in the end 0
pid 744: pinned memory: peak 75497472 bytes, in the end 0

# Objects left in the end
0
