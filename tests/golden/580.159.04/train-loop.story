# What the default view shows
02:04:09.453 -                       python3/2560            gpu0  GPU opened: NVIDIA H200
02:04:09.735 -                       pt_data_pin/2560        gpu0  host memory +56.0 MiB, now 56.0 MiB
02:04:09.794 -                       pt_data_pin/2560        gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:04:09.811 -                       pt_data_pin/2560        gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:04:09.819 -                       pt_data_pin/2560        gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:04:09.823 -                       pt_data_pin/2560        gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:04:10.103 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 564.0 MiB
02:04:10.113 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 604.0 MiB
02:04:10.120 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 644.0 MiB
02:04:10.128 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 684.0 MiB
02:04:10.135 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 724.0 MiB
02:04:10.142 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 764.0 MiB
02:04:10.149 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 808.0 MiB
02:04:14.971 -                       python3/2560            gpu0  GPU memory -414.0 MiB, now 396.0 MiB
02:04:14.971 -                       python3/2560            gpu0  GPU memory +504.0 MiB, now 900.0 MiB
02:04:14.984 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 948.0 MiB
02:04:15.001 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 1004.0 MiB
02:04:15.007 -                       python3/2560            gpu0  GPU memory +64.0 MiB, now 1.0 GiB
02:04:15.007 -                       python3/2560            gpu0  GPU memory +32.0 MiB, now 1.0 GiB
02:04:15.828 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.1 GiB
02:04:15.843 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.1 GiB
02:04:15.847 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.2 GiB
02:04:15.859 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.2 GiB
02:04:15.860 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 1.3 GiB
02:04:15.860 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.3 GiB
02:04:15.861 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.4 GiB
02:04:15.861 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.4 GiB
02:04:15.861 -                       python3/2560            gpu0  GPU memory +12.0 MiB, now 1.4 GiB
02:04:15.861 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 1.5 GiB
02:04:15.862 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.5 GiB
02:04:15.862 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.6 GiB
02:04:15.862 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.6 GiB
02:04:15.862 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 1.7 GiB
02:04:15.862 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 1.7 GiB
02:04:15.863 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.8 GiB
02:04:15.863 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.8 GiB
02:04:15.863 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 1.9 GiB
02:04:15.863 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 1.9 GiB
02:04:15.863 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 1.9 GiB
02:04:15.864 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 2.0 GiB
02:04:15.864 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.0 GiB
02:04:15.864 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.1 GiB
02:04:15.865 -                       python3/2560            gpu0  GPU memory +12.0 MiB, now 2.1 GiB
02:04:15.865 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 2.2 GiB
02:04:15.865 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 2.2 GiB
02:04:15.865 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.3 GiB
02:04:15.866 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.3 GiB
02:04:15.866 -                       python3/2560            gpu0  GPU memory +20.0 MiB, now 2.4 GiB
02:04:15.866 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 2.4 GiB
02:04:15.866 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 2.4 GiB
02:04:15.867 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.5 GiB
02:04:15.867 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.5 GiB
02:04:15.867 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 2.6 GiB
02:04:15.867 -                       python3/2560            gpu0  GPU memory +36.0 MiB, now 2.6 GiB
02:04:15.868 -                       python3/2560            gpu0  GPU memory +24.0 MiB, now 2.7 GiB
02:04:15.868 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.7 GiB
02:04:15.868 -                       python3/2560            gpu0  GPU memory +48.0 MiB, now 2.8 GiB
02:04:15.868 -                       python3/2560            gpu0  GPU memory +12.0 MiB, now 2.8 GiB
02:04:15.868 -                       python3/2560            gpu0  GPU memory +128.0 MiB, now 2.9 GiB
02:04:15.869 -                       python3/2560            gpu0  GPU memory +128.0 MiB, now 3.1 GiB
02:04:15.893 -                       python3/2560            gpu0  GPU memory +256.0 MiB, now 3.3 GiB
02:04:15.922 -                       pt_autograd_0/2560      gpu0  GPU memory +256.0 MiB, now 3.6 GiB
02:04:15.923 -                       pt_autograd_0/2560      gpu0  GPU memory +64.0 MiB, now 3.6 GiB
02:04:17.115 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 3.8 GiB
02:04:17.116 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 3.9 GiB
02:04:17.117 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 4.1 GiB
02:04:17.119 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 4.2 GiB
02:04:17.120 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 4.3 GiB
02:04:17.121 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 4.5 GiB
02:04:17.123 -                       python3/2560            gpu0  GPU memory +144.0 MiB, now 4.6 GiB
02:04:17.123 -                       python3/2560            gpu0  GPU memory +384.0 MiB, now 5.0 GiB
02:04:17.124 -                       python3/2560            gpu0  GPU memory +384.0 MiB, now 5.4 GiB
02:04:17.124 -                       python3/2560            gpu0  GPU memory +768.0 MiB, now 6.1 GiB
02:04:38.170 -                       python3/2560            gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:04:38.170 -                       python3/2560            gpu0  GPU memory -6.1 GiB (128 objects), now 0 B, peak 6.1 GiB
02:04:38.170 -                       python3/2560            gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
02:04:38.170 -                       python3/2560            gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
155 memory.allocated
3 memory.freed
172 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 2560: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 2560: gpu memory: peak 6624903168 bytes, in the end 0
pid 2560: host memory: peak 73396224 bytes, in the end 0
pid 2560: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
