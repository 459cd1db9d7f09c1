"""General English vocabulary, so that the recogniser also understands words outside its domain.

`salad(rng)` makes grammatical nonsense for acoustic variety. `WORDS` also feeds the tokenizer. This
module knows nothing of the assistant.
"""

from __future__ import annotations

import random

NOUNS = """apple arm army art aunt baby back bag ball band bank bath bear bed bell bird block blood
boat body bone book bottle bowl box boy branch bread bridge brother bus butter button cake camera
captain car card carpet cat chain chair chance cheese chest chicken child church city class clock
cloth cloud coat coffee collar colour company computer cook copy corner country cousin cow crowd
cup daughter day desk dinner doctor dog door dream dress driver dust ear earth edge egg engine
evening eye face factory family farm farmer father field finger fire fish floor flower food foot
forest fork friend fruit garden gate girl glass glove gold grass group guest hair hall hammer hand
hat head heart hill history home horse hospital hour house ice idea island jacket job journey juice
key king kitchen knee knife lady lake lamp language law leaf leather leg letter library light line
lion lip list machine map market meal meat metal middle milk minute mirror money month moon morning
mother mountain mouse mouth movie music nail name neck needle neighbour net news night noise nose
number nurse office oil orange oven page pain paint pair paper parent park party path pen pencil
people person phone photo picture piece pig pilot place plan plane plant plate player pocket poem
point potato price prince problem queen question radio rain rice ring river road rock roof room
root rope rule sailor salt sand school science sea season secret seed sheep ship shirt shoe shop
shoulder shower sister skin sky snow soap soldier son song soup spoon spring square stage stairs
star station stick stomach stone store storm story stranger street student sugar summer sun supper
table tail taxi tea teacher team tent thing thread thumb ticket tiger tongue tool tooth towel tower
town toy train tree truck uncle valley vegetable village voice wall war watch water wave way week
wheel wife wind window wine winter wire wolf woman wood word work worker world yard year zoo
temperature distance planet ocean recipe weather television internet battery sentence language
chocolate banana tomato pepper garlic onion pasta elephant dolphin penguin spider butterfly violin
guitar piano football birthday holiday breakfast lunch medicine museum airport hotel newspaper
umbrella blanket pillow basket candle bicycle mushroom strawberry lemon honey vinegar cinnamon
volcano earthquake galaxy gravity oxygen energy magnet rainbow shadow mirror dinosaur castle pirate
dragon wizard robot alarm timer reminder message volume speaker""".split()
VERBS = """ask bake bend bite blow boil borrow break bring build burn buy call carry catch change
choose clean climb close come cook count cover cross cut dance dig draw drink drive drop eat enjoy
explain fall feed feel fight fill find finish fix fly fold follow forget give go grow hang happen
hate have hear help hide hit hold hope hurry hurt jump keep kick kill kiss know laugh lead learn
leave lend let lie lift like listen live lock look lose love make mark mean measure meet melt mix
move need offer open order pack paint pass pay pick plan play point pour pray press promise pull
push put reach read remember repair repeat rest ride ring rise roll run save say search see sell
send serve set shake share shine shoot shout show shut sing sit sleep slip smell smile speak spend
stand start stay steal stop study swim take talk taste teach tear tell thank think throw touch
translate travel try turn understand use visit wait wake walk want warn wash watch wear win wish
wonder work worry write describe calculate convert compare suggest recommend define""".split()
ADJECTIVES = """able afraid angry bad beautiful best better big bitter black blue brave bright
broken brown busy careful cheap clean clear clever cold common cool cruel dark dead dear deep
different difficult dirty dry dull early easy empty expensive false famous fast fat few fine first
flat fond foolish free fresh friendly full funny general gentle glad good great green grey happy
hard healthy heavy high hollow hot huge hungry ill important kind last late lazy left light little
lonely long loose loud low lucky narrow natural new nice noisy old open orange pale perfect pink
plain pleasant polite poor possible pretty proud purple quick quiet rare ready real red rich right
ripe rough round sad safe sharp short shy silent simple single sleepy slow small smooth soft sour
special square steep sticky straight strange strong sudden sweet tall tame thick thin thirsty tight
tired true ugly useful warm weak wet white whole wide wild wise wonderful wooden wrong yellow
young""".split()
ADVERBS = """again almost already always away badly below carefully early easily enough even ever
everywhere exactly finally here inside just later maybe nearly never now often once only outside
perhaps probably quickly quietly really seldom slowly sometimes soon still suddenly then there
today together tomorrow tonight too twice usually very well yesterday""".split()
NAMES = """Adam Alice Anna Ben Charles Clara Daniel David Emma Eric Frank George Grace Harry Helen
Jack James Jane John Julia Kate Laura Lucy Mark Martin Mary Michael Nina Oliver Oscar Paul Peter
Rachel Robert Rose Sam Sarah Simon Sophie Susan Thomas Tom Victor William Africa America Asia Europe
England Scotland London Paris Berlin Rome Tokyo Monday Tuesday Wednesday Thursday Friday Saturday
Sunday January February March April June July August September October November December""".split()
FUNCTION = """a about above across after against all along also although am among an and another any
anybody anyone anything are around as at be because been before behind being beside between both but
by can can't could couldn't did didn't do does doesn't doing don't down during each either else
every everyone everything except for from get gets getting got had has hasn't have haven't having he
he'd he'll he's her here's herself him himself his how how's however I I'd I'll I'm I've if in into
is isn't it it'd it'll it's its itself less let's many may me might mine more most much must my
myself no nobody none nor not nothing of off on one onto or other our ours out over own quite rather
same shall she she'd she'll she's should shouldn't since so some someone something such than that
that's the their theirs them themselves these they they'd they'll they're they've this those though
through till to toward under unless until up upon us was wasn't we we'd we'll we're we've were
weren't what what's when when's where where's whether which while who who's whom whose why will with
within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself hello
okay please sorry thanks goodbye well oh um alright sure hey hi""".split()
WORDS = (*NOUNS, *VERBS, *ADJECTIVES, *ADVERBS, *NAMES, *FUNCTION)

_FRAMES = (
    "The {a} {n} {v}s the {n}.",
    "{N} will {v} the {n} {d}.",
    "I {v} a {a} {n} and two {n}s.",
    "Why did {N} {v} my {n}?",
    "Can you {v} {f} {n} {d}?",
    "We had {k} {n}s, but {N} wanted {k}.",
    "{N} and {N} {v} {f} {a} {n}.",
    "It was {d} {a}, {f} the {n}.",
    "Do {a} {n}s {v} {f} the {n}?",
    "How {a} is the {n} {f} {N}?",
    "Please {v} {k} {n}s {f} {k} {n}s.",
    "Is {k} more {a} than {k}?",
    "{d} {v} {f} {n} {a} {f} {n}.",
    "My {n} doesn't {v} {d}.",
    "What would {N} {v} with {f} {n}?",
    "{k} {n}s.",
    "{a} {n}?",
)


def salad(rng: random.Random) -> str:
    """Draw a sentence of common words, written as in the domain: with capitals, marks, digits."""
    if rng.random() < 0.25:
        words = [rng.choice(WORDS) for _ in range(rng.randint(1, 9))]
        if rng.random() < 0.3:
            words.insert(rng.randint(0, len(words)), str(_number(rng)))
        text = " ".join(words) + rng.choice(".?")
    else:
        text = rng.choice(_FRAMES)
        for slot, pick in (
            ("{n}", lambda: rng.choice(NOUNS)),
            ("{v}", lambda: rng.choice(VERBS)),
            ("{a}", lambda: rng.choice(ADJECTIVES)),
            ("{d}", lambda: rng.choice(ADVERBS)),
            ("{N}", lambda: rng.choice(NAMES)),
            ("{f}", lambda: rng.choice(FUNCTION)),
            ("{k}", lambda: str(_number(rng))),
        ):
            while slot in text:
                text = text.replace(slot, pick(), 1)
    return text[0].upper() + text[1:]


def _number(rng: random.Random) -> int:
    return rng.choice((rng.randint(0, 20), rng.randint(0, 100), rng.randint(0, 1000)))
