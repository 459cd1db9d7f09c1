"""Facts of the starter domain: what a question can name, and the one right answer to it.

A `Fact` is a question with one slot: its carriers (ways to ask) and its rows (what fills the slot,
and the reply). Replies are the answer key, so each is one fixed text. Pure data; it knows nothing
of sampling or of splits.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A question with one slot. `carriers` are written in the notation of `grammar.py`."""

    name: str
    carriers: tuple[str, ...]
    rows: dict[str, str]
    """Slot value, as the user says it, to the reply."""
    weight: float = 1.0


COUNTRIES = {
    # country: capital, continent, language, currency
    "France": ("Paris", "Europe", "French", "euro"),
    "Germany": ("Berlin", "Europe", "German", "euro"),
    "Italy": ("Rome", "Europe", "Italian", "euro"),
    "Spain": ("Madrid", "Europe", "Spanish", "euro"),
    "Portugal": ("Lisbon", "Europe", "Portuguese", "euro"),
    "Austria": ("Vienna", "Europe", "German", "euro"),
    "Poland": ("Warsaw", "Europe", "Polish", "zloty"),
    "Greece": ("Athens", "Europe", "Greek", "euro"),
    "Sweden": ("Stockholm", "Europe", "Swedish", "krona"),
    "Norway": ("Oslo", "Europe", "Norwegian", "krone"),
    "Denmark": ("Copenhagen", "Europe", "Danish", "krone"),
    "Finland": ("Helsinki", "Europe", "Finnish", "euro"),
    "Ireland": ("Dublin", "Europe", "English", "euro"),
    "England": ("London", "Europe", "English", "pound"),
    "Hungary": ("Budapest", "Europe", "Hungarian", "forint"),
    "Russia": ("Moscow", "Europe", "Russian", "ruble"),
    "Turkey": ("Ankara", "Asia", "Turkish", "lira"),
    "Japan": ("Tokyo", "Asia", "Japanese", "yen"),
    "China": ("Beijing", "Asia", "Chinese", "yuan"),
    "India": ("New Delhi", "Asia", "Hindi", "rupee"),
    "Thailand": ("Bangkok", "Asia", "Thai", "baht"),
    "Vietnam": ("Hanoi", "Asia", "Vietnamese", "dong"),
    "Indonesia": ("Jakarta", "Asia", "Indonesian", "rupiah"),
    "South Korea": ("Seoul", "Asia", "Korean", "won"),
    "Egypt": ("Cairo", "Africa", "Arabic", "pound"),
    "Kenya": ("Nairobi", "Africa", "Swahili", "shilling"),
    "Morocco": ("Rabat", "Africa", "Arabic", "dirham"),
    "Nigeria": ("Abuja", "Africa", "English", "naira"),
    "Ghana": ("Accra", "Africa", "English", "cedi"),
    "Canada": ("Ottawa", "North America", "English", "dollar"),
    "Mexico": ("Mexico City", "North America", "Spanish", "peso"),
    "Cuba": ("Havana", "North America", "Spanish", "peso"),
    "the United States": ("Washington", "North America", "English", "dollar"),
    "Brazil": ("Brasilia", "South America", "Portuguese", "real"),
    "Argentina": ("Buenos Aires", "South America", "Spanish", "peso"),
    "Chile": ("Santiago", "South America", "Spanish", "peso"),
    "Peru": ("Lima", "South America", "Spanish", "sol"),
    "Colombia": ("Bogota", "South America", "Spanish", "peso"),
    "Australia": ("Canberra", "Oceania", "English", "dollar"),
    "New Zealand": ("Wellington", "Oceania", "English", "dollar"),
}


def sentence(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[0].upper() + text[1:]


CAPITALS = {c: f"The capital of {c} is {v[0]}." for c, v in COUNTRIES.items()}
CONTINENTS = {c: f"{sentence(c)} is in {v[1]}." for c, v in COUNTRIES.items()}
LANGUAGES = {c: f"People in {c} mostly speak {v[2]}." for c, v in COUNTRIES.items()}
CURRENCIES = {c: f"The money of {c} is the {v[3]}." for c, v in COUNTRIES.items()}
CITIES = {v[0]: f"{v[0]} is the capital of {c}." for c, v in COUNTRIES.items()}

OPPOSITES = {
    a: f"The opposite of {a} is {b}."
    for a, b in {
        "hot": "cold", "big": "small", "up": "down", "left": "right", "old": "young",
        "fast": "slow", "happy": "sad", "light": "dark", "open": "closed", "early": "late",
        "high": "low", "hard": "soft", "wet": "dry", "full": "empty", "rich": "poor",
        "strong": "weak", "loud": "quiet", "near": "far", "clean": "dirty", "day": "night",
        "first": "last", "easy": "difficult", "thick": "thin", "brave": "afraid",
        "sweet": "bitter", "heavy": "light", "long": "short", "warm": "cool",
    }.items()
}  # fmt: skip

ANIMALS = {
    # animal: young, kind, sound or None, legs
    "dog": ("puppy", "mammal", "barks", 4),
    "cat": ("kitten", "mammal", "meows", 4),
    "cow": ("calf", "mammal", "moos", 4),
    "horse": ("foal", "mammal", "neighs", 4),
    "sheep": ("lamb", "mammal", "bleats", 4),
    "pig": ("piglet", "mammal", "grunts", 4),
    "goat": ("kid", "mammal", "bleats", 4),
    "lion": ("cub", "mammal", "roars", 4),
    "bear": ("cub", "mammal", "growls", 4),
    "wolf": ("pup", "mammal", "howls", 4),
    "rabbit": ("kit", "mammal", None, 4),
    "deer": ("fawn", "mammal", None, 4),
    "elephant": ("calf", "mammal", "trumpets", 4),
    "whale": ("calf", "mammal", "sings", 0),
    "dolphin": ("calf", "mammal", "whistles", 0),
    "kangaroo": ("joey", "mammal", None, 2),
    "chicken": ("chick", "bird", "clucks", 2),
    "duck": ("duckling", "bird", "quacks", 2),
    "goose": ("gosling", "bird", "honks", 2),
    "owl": ("owlet", "bird", "hoots", 2),
    "eagle": ("eaglet", "bird", "screams", 2),
    "penguin": ("chick", "bird", None, 2),
    "frog": ("tadpole", "amphibian", "croaks", 4),
    "turtle": ("hatchling", "reptile", None, 4),
    "snake": ("hatchling", "reptile", "hisses", 0),
    "shark": ("pup", "fish", None, 0),
    "bee": ("larva", "insect", "buzzes", 6),
    "butterfly": ("caterpillar", "insect", None, 6),
    "spider": ("spiderling", "arachnid", None, 8),
}


def article(noun: str) -> str:
    """`noun` with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


NO_LEGS = "has no legs"
YOUNG = {article(a): f"A baby {a} is called {article(v[0])}." for a, v in ANIMALS.items()}
KINDS = {article(a): f"{sentence(article(a))} is {article(v[1])}." for a, v in ANIMALS.items()}
SOUNDS = {article(a): f"{sentence(article(a))} {v[2]}." for a, v in ANIMALS.items() if v[2]}
LEGS = {
    article(a): f"{sentence(article(a))} has {v[3]} legs."
    if v[3]
    else f"{sentence(article(a))} {NO_LEGS}."
    for a, v in ANIMALS.items()
}

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
          "October", "November", "December")  # fmt: skip
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
CYCLE = {d: DAYS[(i + 1) % 7] for i, d in enumerate(DAYS)} | {
    m: MONTHS[(i + 1) % 12] for i, m in enumerate(MONTHS)
}
AFTER = {a: f"{b} comes after {a}." for a, b in CYCLE.items()}
BEFORE = {b: f"{a} comes before {b}." for a, b in CYCLE.items()}
DAYS_IN = {
    m: f"{m} has {n} days{', and 29 in a leap year' if n == 28 else ''}."
    for m, n in zip(MONTHS, MONTH_DAYS, strict=True)
}

PLANETS = {
    "Mercury": "Mercury is the smallest planet and the one closest to the sun.",
    "Venus": "Venus is the hottest planet, because thick clouds keep its heat in.",
    "Earth": "Earth is our home, the only planet that we know to have life.",
    "Mars": "Mars is called the red planet, because there is rust in its soil.",
    "Jupiter": "Jupiter is the biggest planet, a giant ball of gas with a great red storm.",
    "Saturn": "Saturn is the planet with the bright rings, which are made of ice and rock.",
    "Uranus": "Uranus is a cold planet that lies on its side as it goes around the sun.",
    "Neptune": "Neptune is the planet farthest from the sun, and it has the fastest winds.",
    "the moon": "The moon goes around the earth once a month and has no air.",
    "the sun": "The sun is a star, and it gives us all our light and warmth.",
}

AUTHORS = {
    "Hamlet": "William Shakespeare", "Romeo and Juliet": "William Shakespeare",
    "Oliver Twist": "Charles Dickens", "A Christmas Carol": "Charles Dickens",
    "Pride and Prejudice": "Jane Austen", "Emma": "Jane Austen",
    "Frankenstein": "Mary Shelley", "Dracula": "Bram Stoker", "Moby Dick": "Herman Melville",
    "Don Quixote": "Miguel de Cervantes", "War and Peace": "Leo Tolstoy",
    "The Jungle Book": "Rudyard Kipling", "Treasure Island": "Robert Louis Stevenson",
    "The Time Machine": "H. G. Wells", "Alice in Wonderland": "Lewis Carroll",
    "Sherlock Holmes": "Arthur Conan Doyle", "Robinson Crusoe": "Daniel Defoe",
    "Peter Pan": "James Barrie", "The Odyssey": "Homer", "Faust": "Goethe",
}  # fmt: skip
WRITERS = {k: f"{k} was written by {v}." for k, v in AUTHORS.items()}

INVENTORS = {
    "the telephone": "Alexander Graham Bell", "the light bulb": "Thomas Edison",
    "the airplane": "the Wright brothers", "the printing press": "Johannes Gutenberg",
    "the steam engine": "James Watt", "dynamite": "Alfred Nobel", "the radio": "Marconi",
    "the battery": "Alessandro Volta", "the diesel engine": "Rudolf Diesel",
    "the world wide web": "Tim Berners Lee", "the car": "Karl Benz",
}  # fmt: skip
INVENTED = {k: f"{sentence(k)} is credited to {v}." for k, v in INVENTORS.items()}

MATERIALS = {
    "glass": "Glass is made from sand that is melted at a very high heat.",
    "paper": "Paper is made from wood that is ground up with water and pressed flat.",
    "bread": "Bread is made from flour, water, yeast and a little salt.",
    "cheese": "Cheese is made from milk that has been thickened and left to ripen.",
    "chocolate": "Chocolate is made from the roasted beans of the cocoa tree.",
    "butter": "Butter is made from cream that is stirred until the fat comes together.",
    "wine": "Wine is made from grapes whose sugar has turned into alcohol.",
    "honey": "Honey is made by bees from the nectar of flowers.",
    "steel": "Steel is made from iron with a little carbon.",
    "concrete": "Concrete is made from cement, sand, stones and water.",
    "silk": "Silk is made by the caterpillars of a moth.",
    "wool": "Wool comes from the coats of sheep.",
    "soap": "Soap is made from fat or oil and a strong base.",
    "rubber": "Rubber is made from the sap of the rubber tree, or from oil.",
    "plastic": "Plastic is made mostly from oil.",
}

MEANINGS = {
    "curious": "Curious means that you want to know or learn something.",
    "ancient": "Ancient means very, very old.",
    "fragile": "Fragile means easy to break.",
    "enormous": "Enormous means very big.",
    "rapid": "Rapid means very fast.",
    "generous": "Generous means happy to give to others.",
    "patient": "Patient means able to wait without getting angry.",
    "humble": "Humble means not proud.",
    "rare": "Rare means that you do not see it often.",
    "silent": "Silent means without any sound.",
    "honest": "Honest means that you tell the truth.",
    "clever": "Clever means quick to learn and understand.",
    "gentle": "Gentle means kind and soft.",
    "lazy": "Lazy means not wanting to work.",
    "proud": "Proud means pleased with something you did.",
    "weird": "Weird means very strange.",
}

SUPERLATIVES = {
    "biggest animal": "The biggest animal is the blue whale.",
    "fastest animal": "The fastest land animal is the cheetah.",
    "tallest animal": "The tallest animal is the giraffe.",
    "biggest ocean": "The biggest ocean is the Pacific.",
    "longest river": "The longest river is the Nile.",
    "highest mountain": "The highest mountain is Mount Everest.",
    "biggest country": "The biggest country is Russia.",
    "smallest country": "The smallest country is Vatican City.",
    "biggest desert": "The biggest hot desert is the Sahara.",
    "biggest planet": "The biggest planet is Jupiter.",
    "smallest planet": "The smallest planet is Mercury.",
    "hottest planet": "The hottest planet is Venus.",
    "biggest island": "The biggest island is Greenland.",
    "smallest bird": "The smallest bird is the bee hummingbird.",
    "biggest bird": "The biggest bird is the ostrich.",
    "deepest lake": "The deepest lake is Lake Baikal.",
    "biggest continent": "The biggest continent is Asia.",
    "smallest ocean": "The smallest ocean is the Arctic.",
    "hardest stone": "The hardest stone is the diamond.",
    "shortest month": "The shortest month is February.",
    "longest day": "The longest day of the year is in June.",
}

COUNTS = {
    "days are in a week": "There are 7 days in a week.",
    "days are in a year": "There are 365 days in a year.",
    "months are in a year": "There are 12 months in a year.",
    "weeks are in a year": "There are 52 weeks in a year.",
    "hours are in a day": "There are 24 hours in a day.",
    "minutes are in an hour": "There are 60 minutes in an hour.",
    "seconds are in a minute": "There are 60 seconds in a minute.",
    "years are in a century": "There are 100 years in a century.",
    "planets are there": "There are 8 planets around the sun.",
    "continents are there": "There are 7 continents.",
    "oceans are there": "There are 5 oceans.",
    "letters are in the alphabet": "There are 26 letters in the English alphabet.",
    "strings does a guitar have": "A guitar has 6 strings.",
    "strings does a violin have": "A violin has 4 strings.",
    "keys does a piano have": "A piano has 88 keys.",
    "bones does a person have": "A grown person has 206 bones.",
    "teeth does a person have": "A grown person has 32 teeth.",
    "hearts does an octopus have": "An octopus has 3 hearts.",
    "arms does an octopus have": "An octopus has 8 arms.",
    "colors are in a rainbow": "A rainbow has 7 colors.",
    "players are in a soccer team": "A soccer team has 11 players.",
    "sides does a triangle have": "A triangle has 3 sides.",
    "sides does a square have": "A square has 4 sides.",
    "sides does a hexagon have": "A hexagon has 6 sides.",
    "eggs are in a dozen": "There are 12 eggs in a dozen.",
    "states are in the United States": "There are 50 states in the United States.",
}

EVENTS = {
    "the first people land on the moon": "The first people landed on the moon in 1969.",
    "the Titanic sink": "The Titanic sank in 1912.",
    "the Second World War end": "The Second World War ended in 1945.",
    "the First World War begin": "The First World War began in 1914.",
    "the Berlin Wall fall": "The Berlin Wall fell in 1989.",
    "Columbus reach America": "Columbus reached America in 1492.",
    "the French Revolution begin": "The French Revolution began in 1789.",
    "the first airplane fly": "The first airplane flew in 1903.",
    "Mozart die": "Mozart died in 1791.",
    "the dinosaurs die out": "The dinosaurs died out about 66 million years ago.",
}

COLORS = {
    "blue and yellow": "Blue and yellow make green.",
    "red and yellow": "Red and yellow make orange.",
    "red and blue": "Red and blue make purple.",
    "red and white": "Red and white make pink.",
    "black and white": "Black and white make gray.",
    "red and green": "Red and green make brown.",
}

TRANSLATIONS = {
    f"{word} in {language}": f"In {language}, {word} is {said}."
    for language, words in {
        "French": {"hello": "bonjour", "goodbye": "au revoir", "thank you": "merci", "yes": "oui",
                   "please": "s'il vous plait", "water": "eau", "friend": "ami"},
        "Spanish": {"hello": "hola", "goodbye": "adios", "thank you": "gracias", "yes": "si",
                    "please": "por favor", "water": "agua", "friend": "amigo"},
        "German": {"hello": "hallo", "goodbye": "auf wiedersehen", "thank you": "danke",
                   "yes": "ja", "please": "bitte", "water": "wasser", "friend": "freund"},
        "Italian": {"hello": "ciao", "goodbye": "arrivederci", "thank you": "grazie",
                    "yes": "si", "please": "per favore", "water": "acqua", "friend": "amico"},
    }.items()
    for word, said in words.items()
}  # fmt: skip

BOILING = {
    "an egg": "Boil an egg for 6 minutes if you like it soft, and for 10 minutes if you like it hard.",
    "pasta": "Boil pasta for about 10 minutes in plenty of salted water.",
    "rice": "Cook rice for about 15 minutes, with twice as much water as rice.",
    "potatoes": "Boil potatoes for about 20 minutes, until a fork goes in easily.",
    "carrots": "Boil carrots for about 8 minutes.",
    "broccoli": "Boil broccoli for about 4 minutes, so that it stays green.",
    "green beans": "Boil green beans for about 7 minutes.",
    "corn": "Boil corn for about 5 minutes.",
    "lentils": "Cook lentils for about 25 minutes.",
    "a chicken": "Roast a chicken for about 80 minutes at 200 degrees.",
    "a steak": "Fry a steak for about 3 minutes on each side, then let it rest.",
    "a pizza": "Bake a pizza for about 12 minutes at 230 degrees.",
    "fish": "Fry fish for about 4 minutes on each side.",
}

RECIPES = {
    "pancakes": "Mix 2 eggs, a cup of milk and a cup of flour. Fry thin rounds in butter until both sides are golden.",
    "an omelet": "Beat 3 eggs with a little salt. Pour them into a hot pan with butter and fold the omelet once it sets.",
    "tomato soup": "Fry an onion, add a can of tomatoes and some stock. Cook it for 20 minutes and blend it smooth.",
    "a salad": "Wash and cut lettuce, tomatoes and cucumber. Mix in oil, vinegar and salt just before you eat.",
    "tea": "Pour boiling water over the tea and wait 4 minutes. Then take out the leaves.",
    "coffee": "Use 2 spoons of ground coffee for a cup. Pour hot water over it slowly.",
    "hot chocolate": "Heat a cup of milk and stir in dark chocolate until it melts. Add sugar if you like.",
    "lemonade": "Squeeze 3 lemons into a jug of water. Add sugar and ice, and stir.",
    "mashed potatoes": "Boil the potatoes until they are soft. Mash them with butter, warm milk and salt.",
    "fried rice": "Fry cold rice in a hot pan with vegetables. Push it aside, scramble an egg, and mix in soy sauce.",
    "garlic bread": "Mix soft butter with garlic and herbs. Spread it on bread and bake it for 10 minutes.",
    "an apple pie": "Fill a pie crust with sliced apples, sugar and cinnamon. Bake it for 45 minutes.",
    "a sandwich": "Spread butter on 2 slices of bread. Add cheese, tomato and lettuce, and close it.",
    "guacamole": "Mash 2 ripe avocados with lime juice and salt. Stir in chopped onion and tomato.",
    "scrambled eggs": "Beat the eggs with a little milk. Stir them slowly in a warm pan until they are just set.",
    "a smoothie": "Blend a banana, some berries and a cup of yogurt. Drink it cold.",
}

SUBSTITUTES = {
    "butter": "You can use oil instead of butter, about a fifth less.",
    "eggs": "You can use a mashed banana instead of an egg when you bake.",
    "milk": "You can use oat or soy milk instead of milk.",
    "sugar": "You can use honey instead of sugar, a little less of it.",
    "cream": "You can use yogurt instead of cream.",
    "lemon juice": "You can use vinegar instead of lemon juice, half as much.",
    "flour": "You can use ground almonds instead of flour in many cakes.",
    "wine": "You can use stock with a little vinegar instead of wine.",
}

TIPS = {
    "clean a window": "Wash it with warm water and a drop of soap. Then dry it with a newspaper or a rubber blade.",
    "remove a red wine stain": "Put salt on it at once and let it soak up the wine. Then wash it in cold water.",
    "keep bread fresh": "Keep bread in a paper bag in a dry place. Freeze what you do not eat in 3 days.",
    "cut an onion without crying": "Use a sharp knife and cool the onion first. A fan or an open window helps too.",
    "peel garlic": "Press the clove with the flat side of a knife. The skin then comes off by itself.",
    "fall asleep": "Go to bed at the same time each day, keep the room dark and cool, and put your phone away.",
    "stop the hiccups": "Hold your breath for 10 seconds, or drink a glass of water slowly.",
    "water my plants": "Water them when the top of the soil feels dry. Most plants die from too much water.",
    "save electricity": "Turn off what you do not use, and let your laundry dry in the air.",
    "learn a language": "Practice for 15 minutes each day. Listen a lot, and speak from the first day.",
    "sharpen a knife": "Draw the blade over a wet stone at a low angle, and do both sides equally.",
    "tie a tie": "Cross the wide end over, around and under, then up and through the loop.",
    "get rid of ants": "Wipe away their trail with vinegar, and close the gap where they come in.",
    "calm down": "Breathe in for 4 seconds and out for 6. Do that 10 times.",
    "stay healthy": "Sleep enough, eat many vegetables, and move for half an hour each day.",
    "whistle": "Make your lips round and small, put your tongue behind your lower teeth, and blow softly.",
}


FACTS: tuple[Fact, ...] = (
    Fact("capital", (
        "what is the capital of {x}?", "what's the capital of {x}?",
        "(tell|give) me the capital of {x}.", "which city is the capital of {x}?",
        "what is the capital city of {x}?", "do you know the capital of {x}?",
        "name the capital of {x}.", "I need to know the capital of {x}.",
        "what city is the capital of {x}?", "I forgot the capital of {x}.",
        "{x}, what is its capital?", "can you name the capital of {x}?",
    ), CAPITALS, 4.0),
    Fact("continent", (
        "what continent is {x} in?", "which continent is {x} in?", "where is {x}?",
        "on which continent is {x}?", "tell me what continent {x} is in.",
        "what part of the world is {x} in?", "is {x} in Europe or in Asia?",
        "where in the world is {x}?", "in which continent do I find {x}?",
    ), CONTINENTS, 1.5),
    Fact("language", (
        "what language do they speak in {x}?", "what language do people speak in {x}?",
        "which language is spoken in {x}?", "what do they speak in {x}?",
        "tell me the language of {x}.", "what is the language of {x}?",
        "what languages are spoken in {x}?", "which language do I need in {x}?",
    ), LANGUAGES, 1.5),
    Fact("currency", (
        "what is the currency of {x}?", "what money do they use in {x}?",
        "which currency does {x} use?", "what currency do they use in {x}?",
        "what is the money of {x} called?", "how do people pay in {x}?",
        "tell me the currency of {x}.", "what kind of money do I need in {x}?",
    ), CURRENCIES, 1.5),
    Fact("city", (
        "{x} is the capital of which country?", "which country has the capital {x}?",
        "what country is {x} the capital of?", "{x} is the capital of what country?",
        "which country is {x} the capital of?", "in which country is {x} the capital?",
        "of which country is {x} the capital?",
    ), CITIES, 1.5),
    Fact("opposite", (
        "what is the opposite of {x}?", "what's the opposite of {x}?", "tell me the opposite of {x}.",
        "give me the opposite of {x}.", "which word is the opposite of {x}?",
        "do you know the opposite of {x}?", "what word means the opposite of {x}?",
        "name the opposite of {x}.",
    ), OPPOSITES, 1.5),
    Fact("young", (
        "what is the baby of {x} called?", "what do you call the baby of {x}?",
        "what is the name for the baby of {x}?", "how do you call the young of {x}?",
        "what is the young of {x} called?", "tell me the word for the baby of {x}.",
    ), YOUNG, 1.0),
    Fact("kind", (
        "what kind of animal is {x}?", "is {x} a mammal?", "what type of animal is {x}?",
        "is {x} a bird or a mammal?", "what sort of animal is {x}?",
        "to which group of animals belongs {x}?", "tell me what kind of animal {x} is.",
    ), KINDS, 1.0),
    Fact("sound", (
        "what sound does {x} make?", "what noise does {x} make?", "what does {x} sound like?",
        "how does {x} sound?", "which sound does {x} make?", "tell me the sound {x} makes.",
    ), SOUNDS, 1.0),
    Fact("legs", (
        "how many legs does {x} have?", "how many legs has {x}?",
        "tell me how many legs {x} has.", "what number of legs does {x} have?",
        "do you know how many legs {x} has?", "count the legs of {x}.",
    ), LEGS, 1.0),
    Fact("after", (
        "what comes after {x}?", "what is after {x}?", "which one comes after {x}?",
        "tell me what comes after {x}.", "what follows {x}?", "what comes right after {x}?",
        "{x} comes before what?",
    ), AFTER, 1.0),
    Fact("before", (
        "what comes before {x}?", "what is before {x}?", "which one comes before {x}?",
        "tell me what comes before {x}.", "what comes right before {x}?",
        "{x} comes after what?",
    ), BEFORE, 1.0),
    Fact("month-days", (
        "how many days are in {x}?", "how many days does {x} have?", "how long is {x}?",
        "how many days has {x}?", "tell me how many days {x} has.",
        "what number of days does {x} have?",
    ), DAYS_IN, 1.0),
    Fact("planet", (
        "tell me (something|a fact) about {x}.", "what do you know about {x}?",
        "what is {x} like?", "what can you tell me about {x}?", "what is special about {x}?",
        "describe {x}.", "I want to know more about {x}.", "what should I know about {x}?",
    ), PLANETS, 1.0),
    Fact("author", (
        "who wrote {x}?", "who is the author of {x}?", "who was {x} written by?",
        "tell me who wrote {x}.", "which author wrote {x}?", "do you know who wrote {x}?",
        "{x} was written by whom?", "name the author of {x}.", "who is the writer of {x}?",
    ), WRITERS, 1.5),
    Fact("inventor", (
        "who invented {x}?", "who is the inventor of {x}?", "who made the first of {x}?",
        "tell me who invented {x}.", "do you know who invented {x}?", "who came up with {x}?",
        "name the inventor of {x}.", "{x} was invented by whom?",
    ), INVENTED, 1.0),
    Fact("material", (
        "what is {x} made of?", "what is {x} made from?", "how is {x} made?",
        "where does {x} come from?", "how do they make {x}?", "tell me how {x} is made.",
        "how do people make {x}?", "do you know how {x} is made?",
    ), MATERIALS, 1.0),
    Fact("meaning", (
        "what does {x} mean?", "what is the meaning of {x}?", "what does the word {x} mean?",
        "explain the word {x}.", "tell me what {x} means.", "what is the meaning of the word {x}?",
        "what do people mean by {x}?", "define {x}.",
    ), MEANINGS, 1.0),
    Fact("superlative", (
        "what is the {x}?", "what's the {x}?", "tell me the {x}.", "which is the {x}?",
        "what is the {x} in the world?", "name the {x}.", "do you know the {x}?",
        "I want to know the {x}.",
    ), SUPERLATIVES, 1.5),
    Fact("count", (
        "how many {x}?", "do you know how many {x}?", "can you tell me how many {x}?",
        "quick question, how many {x}?", "I wonder how many {x}.",
        "tell me, how many {x}?", "just how many {x}?",
    ), COUNTS, 1.5),
    Fact("event", (
        "when did {x}?", "in what year did {x}?", "in which year did {x}?",
        "do you know when did {x}?", "tell me, when did {x}?", "what year did {x}?",
    ), EVENTS, 1.0),
    Fact("color", (
        "what color do {x} make?", "what do {x} make?", "what color do I get from {x}?",
        "what happens if I mix {x}?", "what color is {x} together?",
        "which color do I get when I mix {x}?", "if I mix {x}, what color do I get?",
    ), COLORS, 0.8),
    Fact("translation", (
        "how do you say {x}?", "how do I say {x}?", "what is {x}?", "what's {x}?",
        "tell me how to say {x}.", "what is the word for {x}?", "how do people say {x}?",
        "please translate {x}.",
    ), TRANSLATIONS, 1.5),
    Fact("boiling", (
        "how long do I cook {x}?", "how long should I cook {x}?", "how long does {x} take to cook?",
        "how many minutes do I cook {x}?", "for how long do I cook {x}?",
        "tell me how long to cook {x}.", "how much time does {x} need?", "when is {x} done?",
    ), BOILING, 1.2),
    Fact("recipe", (
        "how do I make {x}?", "how do you make {x}?", "give me a recipe for {x}.",
        "tell me how to make {x}.", "what is the recipe for {x}?", "I want to make {x}.",
        "can you help me make {x}?", "what do I need for {x}?", "do you have a recipe for {x}?",
        "let's make {x}.", "how can I make {x}?",
    ), RECIPES, 1.5),
    Fact("substitute", (
        "what can I use instead of {x}?", "I have no {x}, what can I use?",
        "what can I take instead of {x}?", "I ran out of {x}.", "how do I replace {x}?",
        "what is a good replacement for {x}?", "is there something I can use instead of {x}?",
    ), SUBSTITUTES, 0.8),
    Fact("tip", (
        "how do I {x}?", "how can I {x}?", "what is the best way to {x}?", "tell me how to {x}.",
        "help me {x}.", "how do you {x}?", "what should I do to {x}?", "do you know how to {x}?",
        "I want to {x}.", "any tips to {x}?",
    ), TIPS, 1.5),
)  # fmt: skip
