"""A job of several pods that work together: they meet at MASTER_ADDR:MASTER_PORT, add up their ranks and end together.

python3 examples/meet.py SECONDS_OF_WORK
"""

import os
import socket
import sys
import time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
PATIENCE = 20.0  # seconds until a gang that is not whole gives up


def lead() -> int:
    """Rank 0 hears every other rank, and tells all of them the sum."""
    with socket.create_server(place) as server:
        server.settimeout(PATIENCE)
        peers = [server.accept()[0] for _ in range(size - 1)]
        total = sum(int(peer.recv(16)) for peer in peers)
        time.sleep(float(sys.argv[1]))
        for peer in peers:
            peer.sendall(str(total).encode())
            peer.close()
    return total


def follow() -> int:
    """Every other rank tells its own number and waits for the sum."""
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(place) as leader:
                leader.sendall(str(rank).encode())
                return int(leader.recv(16))
        except ConnectionRefusedError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


total = lead() if rank == 0 else follow()
print(f"rank {rank} of {size} on GPU {os.environ['CUDA_VISIBLE_DEVICES'] or '-'}: the sum of all ranks is {total}")
sys.exit(total != size * (size - 1) // 2)
