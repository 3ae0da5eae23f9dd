# What the default view shows
02:03:53.503 -                       nvidia-smi/2553         gpu0  GPU opened: NVIDIA H200
02:04:06.000 -                       nvidia-smi/2553         gpu0  GPU closed

# Events
1 client.closed
1 client.created
1 gpu.closed
1 gpu.opened
1 memory.mapped
13 sync.created

# Processes

# Objects left in the end
0
