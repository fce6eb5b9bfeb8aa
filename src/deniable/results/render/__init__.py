"""Forms of a document: text, HTML and rich tables for people, CSV and Arrow for programs, pictures."""
