# What the default view shows
02:10:38.468 -                       python3/2979            gpu0  GPU opened: NVIDIA H200
02:10:38.698 -                       python3/2979            gpu0  host memory +56.0 MiB, now 56.0 MiB
02:10:38.771 -                       python3/2979            gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:10:38.791 -                       python3/2979            gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:10:38.799 -                       python3/2979            gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:10:38.803 -                       python3/2979            gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:10:38.810 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 564.0 MiB
02:10:38.820 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 604.0 MiB
02:10:38.829 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 644.0 MiB
02:10:38.839 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 684.0 MiB
02:10:38.848 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 724.0 MiB
02:10:38.857 -                       python3/2979            gpu0  GPU memory +20.0 MiB, now 764.0 MiB
02:10:38.868 -                       python3/2979            gpu0  GPU memory +24.0 MiB, now 808.0 MiB
02:10:38.887 -                       python3/2979            gpu0  GPU memory -414.0 MiB, now 408.0 MiB
02:10:38.887 -                       python3/2979            gpu0  GPU memory +504.0 MiB, now 912.0 MiB
02:10:38.914 -                       python3/2979            gpu0  GPU memory +64.0 MiB, now 980.0 MiB
02:10:38.914 -                       python3/2979            gpu0  GPU memory +32.0 MiB, now 1012.0 MiB
02:10:39.226 -                       python3/2979            gpu0  GPU memory +2.0 MiB, now 1.0 GiB
02:10:39.860 -                       python3/2979            gpu0  GPU memory +34.0 MiB, now 1.0 GiB
02:10:40.087 -                       python3/2979            gpu0  GPU memory +54.0 MiB, now 1.1 GiB
02:10:40.920 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.1 GiB
02:10:40.922 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.2 GiB
02:10:40.922 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.2 GiB
02:10:40.923 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.3 GiB
02:10:40.924 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.3 GiB
02:10:40.925 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.3 GiB
02:10:40.925 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.4 GiB
02:10:40.926 -                       python3/2979            gpu0  GPU memory +40.0 MiB, now 1.4 GiB
02:10:40.927 -                       python3/2979            gpu0  GPU memory +102.0 MiB, now 1.5 GiB
02:10:44.565 -                       python3/2979            gpu0  GPU memory +122.0 MiB, now 1.6 GiB
02:10:45.057 -                       python3/2979            gpu0  GPU memory +124.0 MiB, now 1.8 GiB
02:10:52.525 -                       python3/2979            gpu0  GPU memory +126.0 MiB, now 1.9 GiB
02:11:00.190 -                       python3/2979            gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:11:00.190 -                       python3/2979            gpu0  GPU memory -1.9 GiB (75 objects), now 0 B, peak 1.9 GiB
02:11:00.190 -                       python3/2979            gpu0  host memory -69.9 MiB (26 objects), now 0 B, peak 69.9 MiB
02:11:00.190 -                       python3/2979            gpu0  GPU closed

# Events
20 channel.created
20 channel.destroyed
3 client.closed
3 client.created
1 context.created
1 context.destroyed
1 gpu.closed
1 gpu.opened
102 memory.allocated
3 memory.freed
119 memory.mapped
7 memory.pinned
1 memory.unmapped
1 memory.unpinned
18 sync.created

# Processes
pid 2979: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 2979: gpu memory: peak 2071986176 bytes, in the end 0
pid 2979: host memory: peak 73396224 bytes, in the end 0
pid 2979: pinned memory: peak 21237760 bytes, in the end 0

# Objects left in the end
0
