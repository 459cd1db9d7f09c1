"""Speech synthesis: cuts replies into clauses, puts their text into spoken words, and speaks."""
