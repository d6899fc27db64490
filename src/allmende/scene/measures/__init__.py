"""Figures that a scene may name, computed from the state, the record and the settings; all are exact."""
