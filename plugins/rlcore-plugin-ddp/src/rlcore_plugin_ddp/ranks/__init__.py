"""Several processes that train one config: started, watched, stopped, and begun again together when one of them dies.

The supervisor is the process of the command. It imports no torch: another program does, from which it has the ranks
forked (`template.py`), or placed by a launcher (`placed.py`). Where something else starts the ranks and watches over
them, the process of the command is one of them (`joined.py`).
"""
