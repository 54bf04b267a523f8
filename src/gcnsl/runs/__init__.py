"""Where runs are carried out: in other processes of this machine, or on a cluster."""
