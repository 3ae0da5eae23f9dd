# What the default view shows
02:02:36.661 -                       cuda_start/802          gpu0  GPU opened: NVIDIA H200
02:02:36.780 -                       cuda_start/802          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:36.839 -                       cuda_start/802          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:36.855 -                       cuda_start/802          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:36.862 -                       cuda_start/802          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:36.865 -                       cuda_start/802          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:36.868 -                       cuda_start/802          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:36.929 -                       cuda_start/802          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:36.930 -                       cuda_start/802          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:36.930 -                       cuda_start/802          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:36.932 -                       cuda_start/802          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:36.932 -                       cuda_start/802          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:36.933 -                       cuda_start/802          gpu0  GPU closed
02:02:36.982 -                       cuda_start/814          gpu0  GPU opened: NVIDIA H200
02:02:37.104 -                       cuda_start/814          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:37.164 -                       cuda_start/814          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.183 -                       cuda_start/814          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:37.191 -                       cuda_start/814          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:37.194 -                       cuda_start/814          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:37.198 -                       cuda_start/814          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:37.258 -                       cuda_start/814          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:37.259 -                       cuda_start/814          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.260 -                       cuda_start/814          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:37.261 -                       cuda_start/814          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:37.261 -                       cuda_start/814          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:37.262 -                       cuda_start/814          gpu0  GPU closed
02:02:37.315 -                       cuda_start/826          gpu0  GPU opened: NVIDIA H200
02:02:37.445 -                       cuda_start/826          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:37.509 -                       cuda_start/826          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.530 -                       cuda_start/826          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:37.539 -                       cuda_start/826          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:37.542 -                       cuda_start/826          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:37.546 -                       cuda_start/826          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:37.611 -                       cuda_start/826          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:37.611 -                       cuda_start/826          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.612 -                       cuda_start/826          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:37.614 -                       cuda_start/826          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:37.614 -                       cuda_start/826          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:37.615 -                       cuda_start/826          gpu0  GPU closed
02:02:37.658 -                       cuda_start/838          gpu0  GPU opened: NVIDIA H200
02:02:37.785 -                       cuda_start/838          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:37.848 -                       cuda_start/838          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.868 -                       cuda_start/838          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:37.875 -                       cuda_start/838          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:37.879 -                       cuda_start/838          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:37.882 -                       cuda_start/838          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:37.938 -                       cuda_start/838          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:37.939 -                       cuda_start/838          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:37.939 -                       cuda_start/838          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:37.940 -                       cuda_start/838          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:37.940 -                       cuda_start/838          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:37.941 -                       cuda_start/838          gpu0  GPU closed
02:02:37.992 -                       cuda_start/850          gpu0  GPU opened: NVIDIA H200
02:02:38.119 -                       cuda_start/850          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:38.186 -                       cuda_start/850          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.208 -                       cuda_start/850          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:38.216 -                       cuda_start/850          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:38.220 -                       cuda_start/850          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:38.224 -                       cuda_start/850          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:38.291 -                       cuda_start/850          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:38.292 -                       cuda_start/850          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.293 -                       cuda_start/850          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:38.294 -                       cuda_start/850          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:38.295 -                       cuda_start/850          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:38.296 -                       cuda_start/850          gpu0  GPU closed
02:02:38.346 -                       cuda_start/862          gpu0  GPU opened: NVIDIA H200
02:02:38.464 -                       cuda_start/862          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:38.526 -                       cuda_start/862          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.543 -                       cuda_start/862          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:38.554 -                       cuda_start/862          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:38.558 -                       cuda_start/862          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:38.561 -                       cuda_start/862          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:38.620 -                       cuda_start/862          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:38.621 -                       cuda_start/862          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.622 -                       cuda_start/862          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:38.623 -                       cuda_start/862          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:38.624 -                       cuda_start/862          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:38.625 -                       cuda_start/862          gpu0  GPU closed
02:02:38.678 -                       cuda_start/874          gpu0  GPU opened: NVIDIA H200
02:02:38.814 -                       cuda_start/874          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:38.881 -                       cuda_start/874          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.902 -                       cuda_start/874          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:38.910 -                       cuda_start/874          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:38.914 -                       cuda_start/874          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:38.918 -                       cuda_start/874          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:38.983 -                       cuda_start/874          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:38.984 -                       cuda_start/874          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:38.985 -                       cuda_start/874          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:38.987 -                       cuda_start/874          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:38.987 -                       cuda_start/874          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:38.988 -                       cuda_start/874          gpu0  GPU closed
02:02:39.046 -                       cuda_start/890          gpu0  GPU opened: NVIDIA H200
02:02:39.166 -                       cuda_start/890          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:39.229 -                       cuda_start/890          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:39.251 -                       cuda_start/890          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:39.260 -                       cuda_start/890          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:39.264 -                       cuda_start/890          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:39.268 -                       cuda_start/890          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:39.332 -                       cuda_start/890          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:39.333 -                       cuda_start/890          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:39.333 -                       cuda_start/890          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:39.334 -                       cuda_start/890          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:39.335 -                       cuda_start/890          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:39.336 -                       cuda_start/890          gpu0  GPU closed
02:02:39.395 -                       cuda_start/902          gpu0  GPU opened: NVIDIA H200
02:02:39.520 -                       cuda_start/902          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:39.585 -                       cuda_start/902          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:39.605 -                       cuda_start/902          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:39.613 -                       cuda_start/902          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:39.617 -                       cuda_start/902          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:39.621 -                       cuda_start/902          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:39.687 -                       cuda_start/902          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:39.688 -                       cuda_start/902          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:39.688 -                       cuda_start/902          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:39.690 -                       cuda_start/902          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:39.690 -                       cuda_start/902          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:39.692 -                       cuda_start/902          gpu0  GPU closed
02:02:39.750 -                       cuda_start/914          gpu0  GPU opened: NVIDIA H200
02:02:39.872 -                       cuda_start/914          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:39.932 -                       cuda_start/914          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:39.948 -                       cuda_start/914          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:39.955 -                       cuda_start/914          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:39.958 -                       cuda_start/914          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:39.962 -                       cuda_start/914          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:40.017 -                       cuda_start/914          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:40.018 -                       cuda_start/914          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:40.019 -                       cuda_start/914          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:40.020 -                       cuda_start/914          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:40.021 -                       cuda_start/914          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:40.022 -                       cuda_start/914          gpu0  GPU closed
02:02:40.069 -                       cuda_start/926          gpu0  GPU opened: NVIDIA H200
02:02:40.194 -                       cuda_start/926          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:40.254 -                       cuda_start/926          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:40.273 -                       cuda_start/926          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:40.281 -                       cuda_start/926          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:40.285 -                       cuda_start/926          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:40.288 -                       cuda_start/926          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:40.341 -                       cuda_start/926          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:40.342 -                       cuda_start/926          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:40.342 -                       cuda_start/926          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:40.343 -                       cuda_start/926          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:40.344 -                       cuda_start/926          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:40.345 -                       cuda_start/926          gpu0  GPU closed
02:02:40.410 -                       cuda_start/938          gpu0  GPU opened: NVIDIA H200
02:02:40.530 -                       cuda_start/938          gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:40.590 -                       cuda_start/938          gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:40.606 -                       cuda_start/938          gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:40.614 -                       cuda_start/938          gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:40.617 -                       cuda_start/938          gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:40.621 -                       cuda_start/938          gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:40.683 -                       cuda_start/938          gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:40.684 -                       cuda_start/938          gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:40.685 -                       cuda_start/938          gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:40.686 -                       cuda_start/938          gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:40.686 -                       cuda_start/938          gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:40.687 -                       cuda_start/938          gpu0  GPU closed

# Events
240 channel.created
240 channel.destroyed
24 client.closed
24 client.created
12 context.created
12 context.destroyed
12 gpu.closed
12 gpu.opened
516 memory.allocated
516 memory.freed
684 memory.mapped
48 memory.pinned
636 memory.unmapped
48 memory.unpinned
216 sync.created

# Processes
pid 802: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 802: gpu memory: peak 543162368 bytes, in the end 0
pid 802: host memory: peak 73396224 bytes, in the end 0
pid 802: pinned memory: peak 8388608 bytes, in the end 0
pid 814: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 814: gpu memory: peak 543162368 bytes, in the end 0
pid 814: host memory: peak 73396224 bytes, in the end 0
pid 814: pinned memory: peak 8388608 bytes, in the end 0
pid 826: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 826: gpu memory: peak 543162368 bytes, in the end 0
pid 826: host memory: peak 73396224 bytes, in the end 0
pid 826: pinned memory: peak 8388608 bytes, in the end 0
pid 838: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 838: gpu memory: peak 543162368 bytes, in the end 0
pid 838: host memory: peak 73396224 bytes, in the end 0
pid 838: pinned memory: peak 8388608 bytes, in the end 0
pid 850: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 850: gpu memory: peak 543162368 bytes, in the end 0
pid 850: host memory: peak 73396224 bytes, in the end 0
pid 850: pinned memory: peak 8388608 bytes, in the end 0
pid 862: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 862: gpu memory: peak 543162368 bytes, in the end 0
pid 862: host memory: peak 73396224 bytes, in the end 0
pid 862: pinned memory: peak 8388608 bytes, in the end 0
pid 874: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 874: gpu memory: peak 543162368 bytes, in the end 0
pid 874: host memory: peak 73396224 bytes, in the end 0
pid 874: pinned memory: peak 8388608 bytes, in the end 0
pid 890: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 890: gpu memory: peak 543162368 bytes, in the end 0
pid 890: host memory: peak 73396224 bytes, in the end 0
pid 890: pinned memory: peak 8388608 bytes, in the end 0
pid 902: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 902: gpu memory: peak 543162368 bytes, in the end 0
pid 902: host memory: peak 73396224 bytes, in the end 0
pid 902: pinned memory: peak 8388608 bytes, in the end 0
pid 914: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 914: gpu memory: peak 543162368 bytes, in the end 0
pid 914: host memory: peak 73396224 bytes, in the end 0
pid 914: pinned memory: peak 8388608 bytes, in the end 0
pid 926: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 926: gpu memory: peak 543162368 bytes, in the end 0
pid 926: host memory: peak 73396224 bytes, in the end 0
pid 926: pinned memory: peak 8388608 bytes, in the end 0
pid 938: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 938: gpu memory: peak 543162368 bytes, in the end 0
pid 938: host memory: peak 73396224 bytes, in the end 0
pid 938: pinned memory: peak 8388608 bytes, in the end 0

# Objects left in the end
0
