# What the default view shows
02:02:56.545 -                       cuda_start/1528         gpu0  GPU opened: NVIDIA H200
02:02:56.547 -                       cuda_start/1532         gpu0  GPU opened: NVIDIA H200
02:02:56.550 -                       cuda_start/1537         gpu0  GPU opened: NVIDIA H200
02:02:56.553 -                       cuda_start/1542         gpu0  GPU opened: NVIDIA H200
02:02:56.556 -                       cuda_start/1547         gpu0  GPU opened: NVIDIA H200
02:02:56.561 -                       cuda_start/1552         gpu0  GPU opened: NVIDIA H200
02:02:56.562 -                       cuda_start/1557         gpu0  GPU opened: NVIDIA H200
02:02:56.566 -                       cuda_start/1562         gpu0  GPU opened: NVIDIA H200
02:02:56.734 -                       cuda_start/1528         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.760 -                       cuda_start/1537         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.789 -                       cuda_start/1547         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.816 -                       cuda_start/1562         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.851 -                       cuda_start/1532         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.872 -                       cuda_start/1552         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.896 -                       cuda_start/1542         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:56.921 -                       cuda_start/1557         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:57.363 -                       cuda_start/1528         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.399 -                       cuda_start/1547         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.430 -                       cuda_start/1537         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.450 -                       cuda_start/1557         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.451 -                       cuda_start/1562         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.493 -                       cuda_start/1552         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.507 -                       cuda_start/1542         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.526 -                       cuda_start/1532         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:57.539 -                       cuda_start/1528         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.541 -                       cuda_start/1547         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.545 -                       cuda_start/1557         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.547 -                       cuda_start/1562         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.549 -                       cuda_start/1552         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.551 -                       cuda_start/1537         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.558 -                       cuda_start/1542         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.560 -                       cuda_start/1528         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.561 -                       cuda_start/1547         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.567 -                       cuda_start/1532         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:57.571 -                       cuda_start/1562         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.574 -                       cuda_start/1557         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.574 -                       cuda_start/1547         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.583 -                       cuda_start/1528         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.586 -                       cuda_start/1552         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.591 -                       cuda_start/1562         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.591 -                       cuda_start/1537         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.594 -                       cuda_start/1532         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.594 -                       cuda_start/1542         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:57.600 -                       cuda_start/1557         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.605 -                       cuda_start/1537         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.605 -                       cuda_start/1547         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.606 -                       cuda_start/1552         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.608 -                       cuda_start/1542         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.609 -                       cuda_start/1528         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.612 -                       cuda_start/1562         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.614 -                       cuda_start/1532         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:57.620 -                       cuda_start/1552         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.624 -                       cuda_start/1557         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.625 -                       cuda_start/1537         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.627 -                       cuda_start/1542         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.630 -                       cuda_start/1532         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:57.988 -                       cuda_start/1547         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.000 -                       cuda_start/1547         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.006 -                       cuda_start/1547         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.041 -                       cuda_start/1547         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.044 -                       cuda_start/1547         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.048 -                       cuda_start/1547         gpu0  GPU closed
02:02:58.056 -                       cuda_start/1562         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.062 -                       cuda_start/1562         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.065 -                       cuda_start/1532         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.069 -                       cuda_start/1537         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.071 -                       cuda_start/1582         gpu0  GPU opened: NVIDIA H200
02:02:58.072 -                       cuda_start/1562         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.082 -                       cuda_start/1528         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.083 -                       cuda_start/1532         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.086 -                       cuda_start/1532         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.088 -                       cuda_start/1537         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.089 -                       cuda_start/1528         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.093 -                       cuda_start/1542         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.093 -                       cuda_start/1528         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.094 -                       cuda_start/1537         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.096 -                       cuda_start/1532         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.096 -                       cuda_start/1532         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.097 -                       cuda_start/1562         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.099 -                       cuda_start/1542         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.100 -                       cuda_start/1562         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.101 -                       cuda_start/1542         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.102 -                       cuda_start/1532         gpu0  GPU closed
02:02:58.103 -                       cuda_start/1562         gpu0  GPU closed
02:02:58.111 -                       cuda_start/1528         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.112 -                       cuda_start/1528         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.115 -                       cuda_start/1537         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.115 -                       cuda_start/1528         gpu0  GPU closed
02:02:58.116 -                       cuda_start/1537         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.118 -                       cuda_start/1552         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.118 -                       cuda_start/1542         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.122 -                       cuda_start/1557         gpu0  host memory -56.0 MiB, now 4.0 MiB
02:02:58.124 -                       cuda_start/1590         gpu0  GPU opened: NVIDIA H200
02:02:58.124 -                       cuda_start/1542         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.125 -                       cuda_start/1537         gpu0  GPU closed
02:02:58.125 -                       cuda_start/1594         gpu0  GPU opened: NVIDIA H200
02:02:58.125 -                       cuda_start/1552         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.126 -                       cuda_start/1552         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.126 -                       cuda_start/1542         gpu0  GPU closed
02:02:58.127 -                       cuda_start/1557         gpu0  context closed: 20 channels in 4 groups (8 compute, 12 copy)
02:02:58.131 -                       cuda_start/1557         gpu0  GPU memory -414.0 MiB, now 14.0 MiB
02:02:58.135 -                       cuda_start/1606         gpu0  GPU opened: NVIDIA H200
02:02:58.138 -                       cuda_start/1557         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.140 -                       cuda_start/1552         gpu0  host memory -2.0 MiB, now 0 B, peak 69.9 MiB
02:02:58.140 -                       cuda_start/1557         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.140 -                       cuda_start/1614         gpu0  GPU opened: NVIDIA H200
02:02:58.142 -                       cuda_start/1552         gpu0  GPU memory -2.0 MiB, now 0 B, peak 518.0 MiB
02:02:58.144 -                       cuda_start/1618         gpu0  GPU opened: NVIDIA H200
02:02:58.146 -                       cuda_start/1557         gpu0  GPU closed
02:02:58.147 -                       cuda_start/1552         gpu0  GPU closed
02:02:58.168 -                       cuda_start/1630         gpu0  GPU opened: NVIDIA H200
02:02:58.331 -                       cuda_start/1641         gpu0  GPU opened: NVIDIA H200
02:02:58.411 -                       cuda_start/1590         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.431 -                       cuda_start/1594         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.449 -                       cuda_start/1606         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.465 -                       cuda_start/1582         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.482 -                       cuda_start/1618         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.501 -                       cuda_start/1614         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.524 -                       cuda_start/1641         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.547 -                       cuda_start/1630         gpu0  host memory +56.0 MiB, now 56.0 MiB
02:02:58.997 -                       cuda_start/1618         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.103 -                       cuda_start/1641         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.111 -                       cuda_start/1614         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.129 -                       cuda_start/1582         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.131 -                       cuda_start/1590         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.132 -                       cuda_start/1594         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.138 -                       cuda_start/1606         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.148 -                       cuda_start/1630         gpu0  context: 20 channels in 4 groups (8 compute, 12 copy)
02:02:59.163 -                       cuda_start/1618         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.173 -                       cuda_start/1618         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.174 -                       cuda_start/1614         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.180 -                       cuda_start/1618         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.181 -                       cuda_start/1594         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.185 -                       cuda_start/1641         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.185 -                       cuda_start/1582         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.185 -                       cuda_start/1614         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.188 -                       cuda_start/1606         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.189 -                       cuda_start/1590         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.189 -                       cuda_start/1630         gpu0  GPU memory +2.0 MiB, now 32.0 MiB
02:02:59.191 -                       cuda_start/1594         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.192 -                       cuda_start/1618         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.194 -                       cuda_start/1614         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.203 -                       cuda_start/1582         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.210 -                       cuda_start/1641         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.212 -                       cuda_start/1606         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.214 -                       cuda_start/1594         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.215 -                       cuda_start/1630         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.215 -                       cuda_start/1590         gpu0  GPU memory +70.0 MiB, now 102.0 MiB
02:02:59.220 -                       cuda_start/1641         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.220 -                       cuda_start/1582         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.226 -                       cuda_start/1614         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.229 -                       cuda_start/1590         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.230 -                       cuda_start/1606         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.234 -                       cuda_start/1582         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.234 -                       cuda_start/1594         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.237 -                       cuda_start/1630         gpu0  GPU memory +414.0 MiB, now 518.0 MiB
02:02:59.244 -                       cuda_start/1641         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.247 -                       cuda_start/1590         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.266 -                       cuda_start/1630         gpu0  GPU memory -70.0 MiB, now 444.0 MiB
02:02:59.267 -                       cuda_start/1606         gpu0  GPU memory -70.0 MiB, now 444.0 MiB

# Events
320 channel.created
250 channel.destroyed
24 client.closed
32 client.created
16 context.created
8 context.destroyed
8 gpu.closed
16 gpu.opened
688 memory.allocated
537 memory.freed
912 memory.mapped
64 memory.pinned
666 memory.unmapped
56 memory.unpinned
288 sync.created

# Processes
pid 1528: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1528: gpu memory: peak 543162368 bytes, in the end 0
pid 1528: host memory: peak 73396224 bytes, in the end 0
pid 1528: pinned memory: peak 8388608 bytes, in the end 0
pid 1537: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1537: gpu memory: peak 543162368 bytes, in the end 0
pid 1537: host memory: peak 73396224 bytes, in the end 0
pid 1537: pinned memory: peak 8388608 bytes, in the end 0
pid 1547: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1547: gpu memory: peak 543162368 bytes, in the end 0
pid 1547: host memory: peak 73396224 bytes, in the end 0
pid 1547: pinned memory: peak 8388608 bytes, in the end 0
pid 1532: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1532: gpu memory: peak 543162368 bytes, in the end 0
pid 1532: host memory: peak 73396224 bytes, in the end 0
pid 1532: pinned memory: peak 8388608 bytes, in the end 0
pid 1562: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1562: gpu memory: peak 543162368 bytes, in the end 0
pid 1562: host memory: peak 73396224 bytes, in the end 0
pid 1562: pinned memory: peak 8388608 bytes, in the end 0
pid 1542: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1542: gpu memory: peak 543162368 bytes, in the end 0
pid 1542: host memory: peak 73396224 bytes, in the end 0
pid 1542: pinned memory: peak 8388608 bytes, in the end 0
pid 1557: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1557: gpu memory: peak 543162368 bytes, in the end 0
pid 1557: host memory: peak 73396224 bytes, in the end 0
pid 1557: pinned memory: peak 8388608 bytes, in the end 0
pid 1552: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1552: gpu memory: peak 543162368 bytes, in the end 0
pid 1552: host memory: peak 73396224 bytes, in the end 0
pid 1552: pinned memory: peak 8388608 bytes, in the end 0
pid 1582: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1582: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1582: host memory: peak 73396224 bytes, in the end 62959616
pid 1582: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1641: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1641: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1641: host memory: peak 73396224 bytes, in the end 62951424
pid 1641: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1590: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1590: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1590: host memory: peak 73396224 bytes, in the end 62963712
pid 1590: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1606: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1606: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1606: host memory: peak 73396224 bytes, in the end 62947328
pid 1606: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1594: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1594: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1594: host memory: peak 73396224 bytes, in the end 62947328
pid 1594: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1614: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1614: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1614: host memory: peak 73396224 bytes, in the end 62939136
pid 1614: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1618: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1618: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1618: host memory: peak 73396224 bytes, in the end 62935040
pid 1618: pinned memory: peak 8388608 bytes, in the end 2097152
pid 1630: 1 contexts of 4 groups, 20 channels: 8 compute, 12 copy
pid 1630: gpu memory: peak 543162368 bytes, in the end 450887680
pid 1630: host memory: peak 73396224 bytes, in the end 62963712
pid 1630: pinned memory: peak 8388608 bytes, in the end 2097152

# Objects left in the end
444
