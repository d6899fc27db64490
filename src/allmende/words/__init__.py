"""What people read: whole sentences for reasons, decisions and events, in English and Korean.

A catalogue per language (`en`, `ko`) holds every text; `say`, `say_decision` and `say_event` fill in the figures.
"""

from allmende.words.speak import LANGUAGES, say, say_decision, say_event

__all__ = ["LANGUAGES", "say", "say_decision", "say_event"]
