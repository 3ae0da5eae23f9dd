# What the default view shows
00:07:18.661 -                       nvidia-smi/1074         gpu0  GPU opened: NVIDIA H200
00:07:18.744 -                       nvidia-smi/1074         gpu0  GPU closed

# Events
1 client.closed
1 client.created
1 gpu.closed
1 gpu.opened
1 memory.mapped

# Processes

# Objects left in the end
0
