"""What people read: whole sentences for reasons, remedies, decisions and events, in English and Korean.

A catalogue per language (`en`, `ko`) holds every text; the functions of `speak` fill in the figures.
"""

from allmende.words.catalogue import GROWING
from allmende.words.speak import LANGUAGES, say, say_decision, say_event, say_places, say_remedy, screen

__all__ = ["GROWING", "LANGUAGES", "say", "say_decision", "say_event", "say_places", "say_remedy", "screen"]
