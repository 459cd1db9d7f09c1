"""Questions that the starter models are to decline: outside the domain, live, or about devices.

What is held out here is whole templates and whole names, so that the evaluation asks about things
of which training never heard.
"""

from __future__ import annotations

import random

LIVE = (
    "what is the weather (like|) today?", "will it rain (today|tomorrow)?", "how is the weather?",
    "what is the weather like tomorrow?", "how warm is it outside?", "do I need an umbrella?",
    "what's the weather (today|)?", "is it going to snow?", "what is the temperature outside?",
    "what is in the news?", "tell me the news.", "what happened in the world today?",
    "who won the game last night?", "what is the score?", "how is the traffic?",
    "what is on television tonight?", "when does the next train leave?", "is the store open now?",
    "what does a flight to {place} cost?", "what is the weather in {place}?",
    "how is the weather in {place} today?", "will it rain in {place} tomorrow?",
    "which movies are on tonight?", "what is the price of gold today?",
)  # fmt: skip

DEVICES = (
    "turn (on|off) the light.", "turn (on|off) the lights.", "switch (on|off) the light.",
    "turn (up|down) the heating.", "open the (door|window|garage).", "lock the door.",
    "turn (on|off) the television.", "dim the lights.", "close the blinds.",
    "switch (on|off) the heating.", "start the washing machine.", "turn on the radio.",
    "play some music.", "play a song.", "call my (mother|father|sister|brother|friend).",
    "send a message to my (mother|father|friend).", "write an email.", "order a pizza.",
    "make me a coffee.", "turn (on|off) the fan.", "start the vacuum cleaner.", "make a phone call.",
    "add milk to my shopping list.", "put eggs on my shopping list.", "book a table.",
)  # fmt: skip

PLACES = ("Chicago", "Boston", "Hamburg", "Milan", "Sydney", "Toronto", "Geneva", "Osaka", "Naples",
          "Lyon", "Seattle", "Denver", "Glasgow", "Zurich", "Porto", "Krakow")  # fmt: skip
PEOPLE = ("the president", "the pope", "Napoleon", "Einstein", "Cleopatra", "the queen", "Darwin",
          "Caesar", "Picasso", "Beethoven", "Gandhi", "Newton", "my neighbor", "the prime minister",
          "Elvis", "Socrates", "Plato", "Lincoln", "Mandela", "Michael Jordan")  # fmt: skip
THINGS = ("bitcoin", "a mortgage", "quantum physics", "the stock market", "democracy", "insurance",
          "jazz", "a guitar chord", "a lawyer", "taxes", "philosophy", "chess", "a motorcycle",
          "football", "the economy", "a contract", "geometry", "statistics", "a vaccine", "opera",
          "a spaceship", "yoga", "tennis", "poker", "inflation", "a marathon", "politics",
          "a startup", "architecture", "grammar", "marketing", "a trombone", "knitting", "genetics",
          "the constitution", "calculus", "a submarine", "carpentry", "skiing", "a laptop",
          "the Roman Empire", "the Middle Ages", "a telescope", "a tractor", "origami")  # fmt: skip
UNKNOWN = {
    "country": ("Iceland", "Mongolia", "Bolivia", "Nepal", "Ethiopia", "Jamaica", "Pakistan",
                "Somalia", "Uruguay", "Ecuador", "Latvia", "Estonia", "Croatia", "Serbia", "Malta",
                "Cyprus", "Jordan", "Lebanon", "Oman", "Qatar", "Zambia", "Uganda", "Senegal",
                "Angola", "Tunisia", "Laos", "Cambodia", "Malaysia", "Fiji", "Samoa", "Panama",
                "Texas", "California", "Bavaria", "Sicily", "Siberia", "Tibet", "Atlantis"),
    "city": ("Chicago", "Boston", "Hamburg", "Milan", "Sydney", "Toronto", "Geneva", "Osaka"),
    "word": ("serendipity", "melancholy", "obsolete", "eloquent", "arbitrary", "resilient",
             "ambiguous", "diligent", "frugal", "pragmatic", "tedious", "verbose", "candid"),
    "animal": ("a giraffe", "a squirrel", "a crocodile", "a parrot", "a lobster", "a camel",
               "a zebra", "a hamster", "a scorpion", "a salmon", "a moth", "a lizard", "a walrus"),
    "book": ("Ulysses", "Lolita", "The Hobbit", "Dune", "Beloved", "Middlemarch", "Macbeth",
             "The Iliad", "Candide", "The Trial", "Persuasion", "Jane Eyre", "The Raven"),
    "invention": ("the bicycle", "the computer", "the piano", "the camera", "the refrigerator",
                  "the zipper", "the helicopter", "the elevator", "the calculator", "the laser"),
    "dish": ("lasagna", "sushi", "a curry", "goulash", "risotto", "paella", "ramen", "tiramisu",
             "a pumpkin pie", "chili", "an ice cream", "hummus", "a birthday cake", "croissants"),
}  # fmt: skip
UNKNOWN_HELD_OUT = {
    "country": ("Paraguay", "Slovenia", "Bulgaria", "Zimbabwe", "Bhutan", "Albania"),
    "city": ("Dallas", "Marseille"),
    "word": ("meticulous", "redundant", "nostalgia"),
    "animal": ("a beaver", "a pelican", "an octopus"),
    "book": ("Walden", "Rebecca"),
    "invention": ("the umbrella", "the microscope"),
    "dish": ("a burrito", "meatballs", "waffles"),
}
FACT_UNKNOWN = {
    "capital": "country", "continent": "country", "language": "country", "currency": "country",
    "city": "city", "meaning": "word", "opposite": "word", "kind": "animal", "young": "animal",
    "author": "book", "inventor": "invention", "recipe": "dish", "boiling": "dish",
}  # fmt: skip

TRAIN = (
    "who is {who}?", "how old is {who}?", "where was {who} born?", "when did {who} die?",
    "what did {who} do?", "tell me about {who}.", "how tall is {who}?", "where does {who} live?",
    "is {who} still alive?", "what is {who} famous for?", "who was the wife of {who}?",
    "explain {thing} to me.", "how does {thing} work?", "what is {thing}?", "what is the history of {thing}?",
    "tell me about {thing}.", "teach me {thing}.", "how do I learn {thing}?", "who invented {thing}?",
    "what are the rules of {thing}?", "how much does {thing} cost?", "is {thing} hard to learn?",
    "should I buy {thing}?", "what do you think about {thing}?", "write an essay about {thing}.",
    "what is the best book about {thing}?", "give me advice about {thing}.", "why is {thing} important?",
    "how far is it to {place}?", "how many people live in {place}?", "what can I see in {place}?",
    "how do I get to {place}?", "where is the best restaurant in {place}?", "who is the mayor of {place}?",
    "what is the population of {place}?", "is {place} a nice city?", "find me a hotel in {place}.",
    "who won the world cup in {year}?", "what happened in {year}?", "who was president in {year}?",
    "which movie won in {year}?", "what is the square root of {big}?", "what is {big} times {big}?",
    "what is {big} plus {big}?", "what is {big} minus {big}?", "what is {big} divided by {big}?",
    "how much is {big} percent of {big}?", "is {big} a prime number?", "write a program in Python.",
    "fix my code.", "how do I invest my money?", "who will win the election?", "which party should I vote for?",
    "give me the phone number of a doctor.", "what is wrong with my car?", "do I have the flu?",
    "what does this rash mean?", "translate this sentence into Latin.", "how do you say tomorrow in Japanese?",
    "write me a letter to my landlord.", "summarize the book for me.", "what is the plot of the movie?",
    "who sings that song?", "how many calories are in a burger?", "what is the speed of light?",
    "what is the chemical formula of salt?", "how far is the nearest star?", "how deep is the ocean?",
    "what is the boiling point of alcohol?", "how heavy is a truck?", "how long is a football field?",
    "prove the theorem for me.", "recite the first amendment.", "what is my blood type?",
    "how do I file my taxes?", "plan my vacation.", "which phone should I buy?", "what is the best laptop?",
    "who painted the ceiling of the chapel?", "who composed this symphony?", "what year was the company founded?",
    "how many moons does Jupiter have?", "what is the wavelength of red light?", "spell the word necessary.",
)  # fmt: skip
HELD_OUT = (
    "how rich is {who}?", "where is {who} buried?", "who were the parents of {who}?",
    "compare {thing} with {thing}.", "what is a good course for {thing}?", "when did people start with {thing}?",
    "which river runs through {place}?", "when was {place} founded?", "how do people live in {place}?",
    "what was invented in {year}?", "what is the logarithm of {big}?", "add {big} and {big}.",
    "repair my bicycle.", "draft a speech for the wedding.", "which vitamins do I need?",
    "how many people speak Chinese?", "what is the atomic number of gold?", "who directed that film?",
    "how do vaccines work?", "why did Rome fall?", "what is the tallest building in the world?",
    "can you recommend a good lawyer?", "what is the latest phone?", "who discovered penicillin?",
)  # fmt: skip
PEOPLE_HELD_OUT = ("Mozart's sister", "Churchill", "the emperor", "Marie Curie")
THINGS_HELD_OUT = ("blockchain", "a pension", "ballet", "thermodynamics", "surfing", "a harp")
PLACES_HELD_OUT = ("Philadelphia", "Leipzig", "Valencia", "Perth")


def fill(template: str, rng: random.Random, *, held_out: bool) -> str:
    """`template` with its names drawn from the training or the held-out lists."""
    names = {
        "who": PEOPLE_HELD_OUT if held_out else PEOPLE,
        "thing": THINGS_HELD_OUT if held_out else THINGS,
        "place": PLACES_HELD_OUT if held_out else PLACES,
    }
    for key, values in names.items():
        while "{" + key + "}" in template:
            template = template.replace("{" + key + "}", rng.choice(values), 1)
    while "{year}" in template:
        template = template.replace("{year}", str(rng.randrange(1850, 2020)), 1)
    while "{big}" in template:
        template = template.replace("{big}", str(rng.randrange(21, 1000)), 1)
    return template


def pseudo_word(rng: random.Random) -> str:
    """A name that exists nowhere, so that unknown names are recognised as unknown."""
    syllables = (
        rng.choice("bcdfghjklmnprstvwz")
        + rng.choice("aeiou")
        + rng.choice(("", "n", "r", "l", "s"))
        for _ in range(rng.randint(2, 3))
    )
    return "".join(syllables)
