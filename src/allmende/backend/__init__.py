"""What carries decisions out: `local` on one machine's processes.

Each backend implements `allmende.ports.backend.Backend`.
"""
