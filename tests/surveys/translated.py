"""A survey with every kind of text, in English, German and Arabic."""

from __future__ import annotations

from typing import Any

from deniable.surveys import Survey

DRAFT: dict[str, Any] = {
    "name": "Habits",
    "owner": "Example Institute",
    "purpose": "To learn how people live.",
    "opens": "2026-01-01T00:00:00Z",
    "expires": "2099-01-01T00:00:00Z",
    "epochs": {"days": 3650},
    "epsilon": 1,
    "people": 2000,
    "language": "en",
    "questions": [
        {"id": "smoke", "text": "Do you smoke?", "answers": ["yes", "no"]},
        {"id": "drink", "text": "How often do you drink?", "answers": ["never", "often", 7], "missing": "no answer"},
        {
            "id": "sleep",
            "text": "How long do you sleep?",
            "answers": {"number": {"low": 0, "high": 24, "unit": "hours"}},
        },
        {"id": "apps", "text": "What do you use?", "answers": {"multiple": ["mail", "maps", "music"], "at_most": 2}},
        {
            "id": "rating",
            "text": "How good are they?",
            "answers": {"keys": ["mail", "maps"], "low": 1, "high": 5, "unit": "stars", "at_most": 2},
        },
        {
            "id": "you",
            "text": "About you",
            "answers": {
                "record": {"age": {"low": 18, "high": 99}, "home": ["town", "country"]},
                "titles": {"age": "How old are you?", "home": "Where do you live?"},
            },
        },
    ],
    "translations": {
        "de": {
            "name": "Gewohnheiten",
            "purpose": "Um zu erfahren, wie Menschen leben.",
            "questions": {
                "smoke": {"text": "Rauchen Sie?", "answers": ["ja", "nein"]},
                "drink": {"text": "Wie oft trinken Sie?", "answers": ["nie", "oft", "keine Angabe"]},
                "sleep": {"text": "Wie lange schlafen Sie?", "unit": "Stunden"},
                "apps": {"text": "Was benutzen Sie?", "answers": ["Post", "Karten", "Musik"]},
                "rating": {"text": "Wie gut sind sie?", "answers": ["Post", "Karten"], "unit": "Sterne"},
                "you": {
                    "text": "Über Sie",
                    "parts": {
                        "age": {"name": "Alter", "text": "Wie alt sind Sie?"},
                        "home": {"name": "Wohnort", "text": "Wo wohnen Sie?", "answers": ["Stadt", "Land"]},
                    },
                },
            },
        },
        "ar": {
            "name": "عادات",
            "purpose": "لنعرف كيف يعيش الناس.",
            "questions": {
                "smoke": {"text": "هل تدخن؟", "answers": ["نعم", "لا"]},
                "drink": {"text": "كم مرة تشرب؟", "answers": ["أبدًا", "كثيرًا", "لا إجابة"]},
                "sleep": {"text": "كم ساعة تنام؟", "unit": "ساعة"},
                "apps": {"text": "ماذا تستخدم؟", "answers": ["البريد", "الخرائط", "الموسيقى"]},
                "rating": {"text": "ما مدى جودتها؟", "answers": ["البريد", "الخرائط"], "unit": "نجوم"},
                "you": {
                    "text": "عنك",
                    "parts": {
                        "age": {"name": "العمر", "text": "كم عمرك؟"},
                        "home": {"name": "السكن", "text": "أين تسكن؟", "answers": ["المدينة", "الريف"]},
                    },
                },
            },
        },
    },
}

ANSWERS = {
    "smoke": "no",
    "drink": "often",
    "sleep": 7.5,
    "apps": ["maps", "music"],
    "rating": {"maps": 4.0},
    "you": {"age": 44, "home": "country"},
}
GERMAN = {
    "smoke": "nein",
    "drink": "oft",
    "sleep": 7.5,
    "apps": ["Karten", "Musik"],
    "rating": {"Karten": 4.0},
    "you": {"Alter": 44, "Wohnort": "Land"},
}
"""The same answers."""


def translated() -> Survey:
    return Survey.from_draft(DRAFT)
