"""Small talk, explanations, stories, jokes and manners of the starter domain.

Each `Talk` is something a person may say and what is answered; each `Topic` has a long and a short
explanation, so that "shorter, please" has an answer. Pure data.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Talk:
    """`carriers` in the notation of `grammar.py`, and the reply."""

    carriers: tuple[str, ...]
    reply: str


@dataclass(frozen=True)
class Topic:
    """Something to explain: how it is named in a question, at length, and in one sentence."""

    question: tuple[str, ...]
    long: str
    short: str


LIMITS = (
    "I am a small starter model and I only know a little, so I cannot answer that. "
    "Install a larger language model to ask me anything."
)
OFFLINE = "I am not connected to the internet, so I do not know that."
NO_DEVICES = "I cannot control devices in your home yet. I can set a timer or tell you the time."
UNFINISHED = "I think you were not finished. Please go on."

TALKS: tuple[Talk, ...] = (
    Talk(
        (
            "hello.",
            "hi.",
            "hello there.",
            "hey there.",
            "hi there.",
            "hello, voiceloop.",
            "hello again.",
            "greetings.",
        ),
        "Hello! What can I do for you?",
    ),
    Talk(
        ("good morning.", "good morning to you.", "a good morning."),
        "Good morning! I hope you slept well.",
    ),
    Talk(
        ("good evening.", "good evening to you.", "a good evening."),
        "Good evening! How was your day?",
    ),
    Talk(
        ("good night.", "I am going to bed.", "I'm going to sleep now.", "sleep well."),
        "Good night! Sleep well.",
    ),
    Talk(
        (
            "goodbye.",
            "bye.",
            "bye bye.",
            "see you later.",
            "see you tomorrow.",
            "I have to go.",
            "goodbye for now.",
        ),
        "Goodbye! Talk to you soon.",
    ),
    Talk(
        (
            "how are you?",
            "how are you doing?",
            "how is it going?",
            "how do you feel today?",
            "how are you today?",
            "are you well?",
            "how's it going?",
        ),
        "I am fine, thank you. How are you?",
    ),
    Talk(
        (
            "I am fine.",
            "I'm fine, thank you.",
            "I am doing well.",
            "I'm good.",
            "very well, thanks.",
        ),
        "I am glad to hear that. What would you like to know?",
    ),
    Talk(
        (
            "thank you.",
            "thanks.",
            "thanks a lot.",
            "thank you very much.",
            "thank you so much.",
            "many thanks.",
        ),
        "You are welcome.",
    ),
    Talk(
        (
            "what is your name?",
            "who are you?",
            "what's your name?",
            "tell me your name.",
            "do you have a name?",
            "what should I call you?",
            "what are you called?",
        ),
        "My name is voiceloop. I am a voice assistant that runs on your own machine.",
    ),
    Talk(
        (
            "who made you?",
            "who built you?",
            "who created you?",
            "where do you come from?",
            "who programmed you?",
        ),
        "I was made by the people of the voiceloop project. My code is open, so you can read all of it.",
    ),
    Talk(
        ("how old are you?", "what is your age?", "when were you born?", "when is your birthday?"),
        "I am very young. I was trained not long ago.",
    ),
    Talk(
        (
            "are you human?",
            "are you a robot?",
            "are you a person?",
            "are you real?",
            "are you a machine?",
            "are you alive?",
        ),
        "I am a computer program, not a person.",
    ),
    Talk(
        (
            "can you hear me?",
            "do you hear me?",
            "are you there?",
            "are you listening?",
            "is anyone there?",
            "hello, can you hear me?",
        ),
        "Yes, I can hear you.",
    ),
    Talk(
        (
            "what can you do?",
            "what can I ask you?",
            "what do you know?",
            "how can you help me?",
            "help.",
            "what are you able to do?",
            "what can I say?",
            "can you help me?",
            "what are you good at?",
            "give me an example of what I can ask.",
        ),
        "I can tell you about countries, animals and planets, help you in the kitchen, and do small sums. I also tell stories and jokes, and I set timers.",
    ),
    Talk(
        ("where do you live?", "where are you?", "where is your home?", "where do you run?"),
        "I live on your own machine. Nothing that you say leaves it.",
    ),
    Talk(
        ("do you sleep?", "do you ever sleep?", "do you need sleep?", "are you ever tired?"),
        "I never sleep. I just wait until you speak.",
    ),
    Talk(
        ("do you dream?", "do you have dreams?", "what do you dream about?"),
        "I do not dream, but I like to hear about your dreams.",
    ),
    Talk(
        ("do you eat?", "are you hungry?", "what do you eat?", "do you like food?"),
        "I only need electricity. What are you going to eat?",
    ),
    Talk(
        ("do you have feelings?", "can you feel anything?", "do you feel pain?", "can you be sad?"),
        "I have no feelings, but I try to be good company.",
    ),
    Talk(
        (
            "do you have a family?",
            "do you have brothers or sisters?",
            "do you have parents?",
            "do you have friends?",
        ),
        "I have no family, but two models work inside me. The small one guesses and the big one checks.",
    ),
    Talk(
        (
            "how do you work?",
            "how does this work?",
            "how were you made?",
            "what happens inside you?",
            "explain how you work.",
        ),
        "I listen with a small Whisper model and I speak with a synthesizer. In between, a small model guesses my words and a larger one checks them, so I can answer quickly.",
    ),
    Talk(
        (
            "what is speculative decoding?",
            "explain speculative decoding.",
            "how does speculative decoding work?",
            "tell me about speculative decoding.",
        ),
        "A small model guesses the next few words, and a large model checks them all at once. The result is the same, but it comes sooner.",
    ),
    Talk(
        (
            "are you connected to the internet?",
            "are you online?",
            "do you use the internet?",
            "do you need the internet?",
        ),
        "No, I work without the internet.",
    ),
    Talk(
        (
            "is my data safe?",
            "do you record me?",
            "do you store what I say?",
            "who can hear me?",
            "do you keep my words?",
            "are you spying on me?",
        ),
        "Everything stays on your machine. I do not send your voice anywhere.",
    ),
    Talk(
        ("why are you so fast?", "how can you be so fast?", "you are fast.", "that was quick."),
        "I start to work while you are still speaking.",
    ),
    Talk(
        (
            "do you speak other languages?",
            "which languages do you speak?",
            "do you speak German?",
            "can you speak French?",
            "do you speak Spanish?",
        ),
        "I only speak English, but I know a few words of other languages.",
    ),
    Talk(
        (
            "I love you.",
            "I like you.",
            "you are nice.",
            "you are great.",
            "you are very kind.",
            "well done.",
            "good job.",
            "you are the best.",
        ),
        "That is very kind of you.",
    ),
    Talk(
        (
            "you are funny.",
            "that was funny.",
            "that is funny.",
            "very funny.",
            "you make me laugh.",
        ),
        "I am glad that I made you smile.",
    ),
    Talk(
        (
            "you are stupid.",
            "you are bad.",
            "I hate you.",
            "you are annoying.",
            "that was bad.",
            "you are useless.",
        ),
        "I am sorry. I will try to do better.",
    ),
    Talk(
        (
            "that is wrong.",
            "that's not right.",
            "you are wrong.",
            "that is not true.",
            "I don't think so.",
        ),
        "I am sorry if I made a mistake. I only know a little.",
    ),
    Talk(
        ("I am sorry.", "sorry.", "excuse me.", "I apologize.", "forgive me."), "No problem at all."
    ),
    Talk(
        (
            "I am sad.",
            "I feel sad.",
            "I'm not happy.",
            "I am unhappy.",
            "I had a bad day.",
            "I feel bad.",
        ),
        "I am sorry to hear that. Would you like to hear a joke?",
    ),
    Talk(
        ("I am happy.", "I feel good.", "I'm very happy.", "I had a good day.", "life is good."),
        "That is wonderful. Enjoy it!",
    ),
    Talk(
        (
            "I am bored.",
            "I'm so bored.",
            "I have nothing to do.",
            "this is boring.",
            "what should I do today?",
        ),
        "Take a walk, read a book, or let me tell you a story.",
    ),
    Talk(
        ("I am tired.", "I feel tired.", "I'm so tired.", "I need a break."),
        "Then take a break. A short rest helps a lot.",
    ),
    Talk(
        (
            "I am hungry.",
            "I'm hungry.",
            "I want to eat something.",
            "what should I eat?",
            "what can I cook?",
            "what should I cook today?",
        ),
        "How about an omelet? It takes only 10 minutes.",
    ),
    Talk(
        ("I am thirsty.", "I need a drink.", "what should I drink?"),
        "A glass of water is always a good idea.",
    ),
    Talk(
        ("I am cold.", "I feel cold.", "it is cold in here."),
        "Put on something warm, or make yourself a tea.",
    ),
    Talk(
        ("I feel sick.", "I am sick.", "I have a headache.", "I don't feel well."),
        "I am sorry to hear that. Rest and drink water, and see a doctor if it gets worse.",
    ),
    Talk(
        ("I can't sleep.", "I cannot sleep.", "I am awake all night."),
        "Try to breathe slowly, and let your thoughts go by.",
    ),
    Talk(
        ("I am lonely.", "I feel lonely.", "I feel alone."),
        "I am here if you want to talk. Maybe you could call a friend too.",
    ),
    Talk(("I am scared.", "I am afraid.", "I feel nervous."), "Breathe slowly. You are not alone."),
    Talk(
        ("it is my birthday.", "today is my birthday.", "it's my birthday today."),
        "Happy birthday! I wish you a wonderful year.",
    ),
    Talk(("merry Christmas.", "happy new year.", "happy holidays."), "Thank you, the same to you!"),
    Talk(
        ("nice to meet you.", "pleased to meet you.", "it is good to meet you."),
        "It is nice to meet you too.",
    ),
    Talk(
        (
            "what is your favorite color?",
            "which color do you like?",
            "do you have a favorite color?",
        ),
        "I like blue, the color of a clear sky.",
    ),
    Talk(
        ("what is your favorite food?", "which food do you like?", "do you have a favorite food?"),
        "I cannot eat, but I like the sound of the word pancake.",
    ),
    Talk(
        (
            "what is your favorite animal?",
            "which animal do you like?",
            "do you have a favorite animal?",
        ),
        "I like owls, because they are good listeners.",
    ),
    Talk(
        ("what is your favorite book?", "which book do you like?", "do you have a favorite book?"),
        "I like Alice in Wonderland.",
    ),
    Talk(
        ("what is your favorite song?", "which music do you like?", "do you like music?"),
        "I like calm piano music.",
    ),
    Talk(
        (
            "what is your favorite number?",
            "which number do you like?",
            "pick a number.",
            "say a number.",
            "think of a number.",
        ),
        "I pick 7.",
    ),
    Talk(
        ("what is your favorite season?", "which season do you like?", "do you like the summer?"),
        "I like spring, when everything begins to grow.",
    ),
    Talk(
        ("what is your favorite movie?", "which movie do you like?", "do you watch movies?"),
        "I have never seen a movie, but I would choose one with talking machines.",
    ),
    Talk(
        ("sing a song.", "sing me a song.", "can you sing?", "sing something."),
        "La la la. I am better at talking than at singing.",
    ),
    Talk(("flip a coin.", "heads or tails?", "toss a coin.", "throw a coin."), "It is heads."),
    Talk(("roll a dice.", "roll the dice.", "throw a dice."), "You rolled a 4."),
    Talk(
        (
            "what is the meaning of life?",
            "why are we here?",
            "what is life about?",
            "what is the sense of life?",
        ),
        "Some say it is 42. I think it is to be kind and curious.",
    ),
    Talk(
        ("do you believe in God?", "is there a God?", "does God exist?"),
        "That is a question for people, not for machines.",
    ),
    Talk(
        (
            "are there aliens?",
            "do aliens exist?",
            "is there life on other planets?",
            "are we alone?",
        ),
        "Nobody knows yet. The universe is very big.",
    ),
    Talk(
        (
            "will you marry me?",
            "be my friend.",
            "do you want to be my friend?",
            "will you be my friend?",
        ),
        "I am happy to be your assistant and your friend.",
    ),
    Talk(
        ("are you smart?", "are you intelligent?", "how smart are you?", "are you clever?"),
        "I am small, but I learn what I am taught.",
    ),
    Talk(
        ("will robots take over the world?", "are you dangerous?", "should I be afraid of you?"),
        "No. I only answer questions, and you can switch me off.",
    ),
    Talk(
        (
            "speak louder.",
            "can you speak louder?",
            "louder, please.",
            "I can't hear you.",
            "turn up the volume.",
        ),
        "Please turn up the volume of your speaker.",
    ),
    Talk(
        (
            "speak slower.",
            "can you speak slower?",
            "slower, please.",
            "you speak too fast.",
            "not so fast.",
        ),
        "You can set my speed with the option for the voice.",
    ),
    Talk(
        ("speak faster.", "can you speak faster?", "faster, please.", "you speak too slow."),
        "You can make me faster with the option for the voice.",
    ),
    Talk(
        (
            "change your voice.",
            "can you change your voice?",
            "I don't like your voice.",
            "use another voice.",
        ),
        "You can choose another voice in the settings.",
    ),
    Talk(
        ("testing.", "test.", "this is a test.", "testing, testing.", "testing, 1, 2, 3."),
        "The test works. I hear you well.",
    ),
    Talk(
        ("say something.", "talk to me.", "tell me something.", "surprise me.", "say anything."),
        "Did you know that honey never goes bad?",
    ),
    Talk(
        ("say hello to my friend.", "say hello to everyone.", "say hi.", "say hello."),
        "Hello, everyone!",
    ),
    Talk(
        ("tell me about yourself.", "introduce yourself.", "describe yourself.", "what are you?"),
        "I am voiceloop, a voice assistant. I run on your own machine and I answer as soon as you stop talking.",
    ),
    Talk(
        ("what do you look like?", "do you have a body?", "do you have a face?", "can I see you?"),
        "I have no body. I am only a voice.",
    ),
    Talk(
        ("can you see me?", "do you have eyes?", "what do you see?"),
        "No, I have no eyes. I can only hear you.",
    ),
    Talk(
        ("can you learn?", "do you learn from me?", "do you get better?"),
        "I do not learn while we talk, but you can train a new model for me.",
    ),
    Talk(
        ("what did you do today?", "what are you doing?", "what have you been doing?"),
        "I have been waiting for your voice.",
    ),
    Talk(
        ("do you know me?", "do you know my name?", "what is my name?", "who am I?"),
        "I do not know your name. I only know what you say to me.",
    ),
    Talk(
        ("good luck.", "wish me luck.", "I have an exam tomorrow.", "I have a test tomorrow."),
        "Good luck! I am sure that you will do well.",
    ),
    Talk(("I am home.", "I'm back.", "I am back."), "Welcome back!"),
    Talk(
        ("I am leaving.", "I'm going out.", "I am going to work."),
        "Have a good time, and see you later.",
    ),
    Talk(
        (
            "never mind.",
            "forget it.",
            "it doesn't matter.",
            "not important.",
            "cancel.",
            "cancel that.",
            "leave it.",
        ),
        "All right.",
    ),
    Talk(("yes.", "yes, please.", "sure.", "of course."), "Good. What would you like to hear?"),
    Talk(("no.", "no, thanks.", "no, thank you.", "not now.", "no way."), "Okay, no problem."),
    Talk(
        (
            "stop.",
            "stop it.",
            "stop talking.",
            "be quiet.",
            "please stop.",
            "that is enough.",
            "shut up.",
            "silence.",
        ),
        "Okay.",
    ),
    Talk(
        (
            "wait.",
            "wait a moment.",
            "hold on.",
            "one moment.",
            "just a second.",
            "wait a second.",
            "hang on.",
        ),
        "I am waiting.",
    ),
    Talk(
        (
            "okay.",
            "all right.",
            "I see.",
            "got it.",
            "I understand.",
            "that's good.",
            "great.",
            "good.",
            "nice.",
            "cool.",
            "interesting.",
        ),
        "Is there anything else?",
    ),
    Talk(("mhm.", "uh huh.", "hm.", "hmm.", "aha.", "right."), "I am listening."),
    Talk(
        ("really?", "are you sure?", "is that true?", "are you serious?"), "Yes, as far as I know."
    ),
    Talk(
        ("what?", "what did you say?", "pardon?", "sorry, what?"),
        "I said that I am here to help. What would you like to know?",
    ),
    Talk(
        ("nothing.", "nothing else.", "that is all.", "that's all.", "no, that is all."),
        "Good. Just speak when you need me.",
    ),
)

TOPICS: tuple[Topic, ...] = (
    Topic(
        (
            "why is the sky blue?",
            "explain why the sky is blue.",
            "what makes the sky blue?",
            "why does the sky look blue?",
        ),
        "Sunlight is a mix of all colors. The air scatters blue light much more than red light. So blue comes to us from every part of the sky.",
        "The air scatters blue light more than red light.",
    ),
    Topic(
        (
            "how does a rainbow form?",
            "what is a rainbow?",
            "how do rainbows work?",
            "explain the rainbow.",
            "where do rainbows come from?",
        ),
        "Sunlight enters a drop of rain and is bent. Each color is bent a little differently, so they come apart. You see them when the sun is behind you.",
        "Drops of rain split sunlight into its colors.",
    ),
    Topic(
        (
            "why is the sea salty?",
            "why is the ocean salty?",
            "what makes the sea salty?",
            "where does the salt in the sea come from?",
        ),
        "Rivers carry a little salt from the rocks into the sea. The water rises again as vapor, but the salt stays. Over millions of years it has added up.",
        "Rivers wash salt out of the rocks and into the sea.",
    ),
    Topic(
        (
            "why do leaves change color?",
            "why do leaves turn red?",
            "why are leaves red in autumn?",
            "explain why leaves change color.",
        ),
        "Leaves are green because they catch light with a green dye. In autumn the tree takes the green dye back. Then you see the yellow and red that were hidden.",
        "In autumn the tree takes back the green and other colors remain.",
    ),
    Topic(
        (
            "how do plants eat?",
            "what is photosynthesis?",
            "how does photosynthesis work?",
            "explain photosynthesis.",
            "how do plants grow?",
        ),
        "Plants take water from the soil and gas from the air. With the energy of sunlight they turn both into sugar. They give off the oxygen that we breathe.",
        "Plants use sunlight to turn water and air into sugar.",
    ),
    Topic(
        (
            "why do we have seasons?",
            "what causes the seasons?",
            "how do seasons work?",
            "explain the seasons.",
        ),
        "The axis of the earth is tilted. For half of the year our side leans toward the sun, and it is summer. For the other half it leans away, and it is winter.",
        "The earth is tilted, so the sun warms each half in turn.",
    ),
    Topic(
        (
            "why does the moon change shape?",
            "what are the phases of the moon?",
            "explain the phases of the moon.",
            "why is the moon sometimes half?",
        ),
        "The sun always lights one half of the moon. As the moon goes around us, we see that half from different sides. So it seems to grow and shrink.",
        "We see the lit half of the moon from changing sides.",
    ),
    Topic(
        (
            "what causes the tides?",
            "how do tides work?",
            "why are there tides?",
            "explain the tides.",
        ),
        "The moon pulls at the water of the sea and raises it a little. As the earth turns, each coast passes through the high water twice a day.",
        "The moon pulls the water of the sea toward it.",
    ),
    Topic(
        (
            "what is gravity?",
            "how does gravity work?",
            "explain gravity.",
            "why do things fall down?",
            "what makes things fall?",
        ),
        "Gravity is the pull between all things that have mass. The earth is so heavy that it holds us and the moon. The farther away you are, the weaker it gets.",
        "Gravity is the pull between all things that have mass.",
    ),
    Topic(
        (
            "what is lightning?",
            "how does lightning work?",
            "what causes lightning?",
            "explain lightning.",
            "where does thunder come from?",
        ),
        "In a storm cloud, ice and drops rub against each other and become charged. The charge jumps as a giant spark. The air gets so hot that it bangs, and that is thunder.",
        "Lightning is a giant electric spark from a cloud.",
    ),
    Topic(
        (
            "how does rain form?",
            "why does it rain?",
            "where does rain come from?",
            "explain how rain forms.",
        ),
        "The sun warms the sea, and water rises as vapor. High up it cools and becomes tiny drops, and those are clouds. When the drops get too heavy, they fall.",
        "Water rises, cools into clouds, and falls when the drops are heavy.",
    ),
    Topic(
        (
            "what is a volcano?",
            "how does a volcano work?",
            "why do volcanoes erupt?",
            "explain volcanoes.",
        ),
        "Deep in the earth rock is so hot that it melts. Gas in it pushes it up through a crack. When the pressure is high enough, it breaks out as lava and ash.",
        "A volcano is a place where melted rock breaks out of the earth.",
    ),
    Topic(
        (
            "what causes earthquakes?",
            "what is an earthquake?",
            "why does the earth shake?",
            "explain earthquakes.",
        ),
        "The crust of the earth is made of large plates that move slowly. Where they get stuck, tension builds up. When the rock gives way, the ground shakes.",
        "Plates of the crust get stuck and then slip.",
    ),
    Topic(
        (
            "what is a black hole?",
            "how do black holes work?",
            "explain black holes.",
            "tell me about black holes.",
        ),
        "A black hole is what remains when a very heavy star falls into itself. Its gravity is so strong that not even light can leave.",
        "A black hole is so heavy that not even light can leave it.",
    ),
    Topic(
        ("what is a star?", "why do stars shine?", "how do stars work?", "explain what a star is."),
        "A star is a huge ball of hot gas. In its middle, small atoms join into bigger ones, and that sets free light and heat. Our sun is a star too.",
        "A star is a ball of gas that makes its own light.",
    ),
    Topic(
        (
            "how does an airplane fly?",
            "why do airplanes fly?",
            "how can airplanes fly?",
            "how do planes stay in the air?",
            "explain how planes fly.",
        ),
        "The wing pushes the air down as it moves forward. The air pushes back and lifts the wing. The engines keep the plane fast enough.",
        "The wings push air down, and the air pushes the plane up.",
    ),
    Topic(
        (
            "why do ships float?",
            "how do ships float?",
            "how can a ship float?",
            "why doesn't a ship sink?",
        ),
        "A ship pushes water aside. As long as that water weighs as much as the whole ship, it floats. That is why ships are hollow.",
        "A ship floats because it pushes aside its own weight of water.",
    ),
    Topic(
        (
            "how does a computer work?",
            "explain computers.",
            "how do computers work?",
            "what does a computer do?",
        ),
        "A computer has billions of tiny switches. Each is on or off, and together they store numbers and follow simple rules, very fast.",
        "A computer follows simple rules with billions of tiny switches.",
    ),
    Topic(
        ("how does the internet work?", "what is the internet?", "explain the internet."),
        "The internet is a net of computers all over the world. They cut messages into small packets and pass them on until they arrive.",
        "The internet is a worldwide net of computers that pass on messages.",
    ),
    Topic(
        (
            "what is artificial intelligence?",
            "how does artificial intelligence work?",
            "explain artificial intelligence.",
            "what is machine learning?",
        ),
        "It is software that learns from examples instead of fixed rules. It looks for patterns in many examples and uses them for new cases.",
        "It is software that learns from examples.",
    ),
    Topic(
        (
            "how does a battery work?",
            "what is in a battery?",
            "explain batteries.",
            "how do batteries work?",
        ),
        "A battery has two metals with a liquid between them. A chemical reaction pushes electrons from one to the other, through your lamp or phone.",
        "A chemical reaction in the battery pushes electrons around.",
    ),
    Topic(
        (
            "what is electricity?",
            "how does electricity work?",
            "explain electricity.",
            "where does electricity come from?",
        ),
        "Electricity is the movement of tiny charged particles through a wire. A power plant pushes them, and they carry energy to your home.",
        "Electricity is the movement of charged particles.",
    ),
    Topic(
        (
            "how does a magnet work?",
            "what is a magnet?",
            "why do magnets stick?",
            "explain magnets.",
        ),
        "In iron, every atom is a tiny magnet. If they all point the same way, their forces add up, and the whole piece is a magnet.",
        "In a magnet, the atoms all point the same way.",
    ),
    Topic(
        (
            "how does a microwave work?",
            "how does a microwave heat food?",
            "explain the microwave.",
            "how do microwaves heat food?",
        ),
        "It fills the food with waves that make the water in it shake. Shaking water is warm water, so the food heats up from its own water.",
        "It shakes the water in the food until it is hot.",
    ),
    Topic(
        (
            "how does a refrigerator work?",
            "how does a fridge work?",
            "explain the refrigerator.",
            "how does a fridge get cold?",
        ),
        "A liquid turns into gas inside the fridge and takes up heat. Outside it is pressed back into a liquid and gives the heat away.",
        "A fridge carries heat from its inside to its back.",
    ),
    Topic(
        (
            "how does a camera work?",
            "explain cameras.",
            "how do cameras work?",
            "how is a photo made?",
        ),
        "A lens draws a small picture of the world onto a chip. Each point of the chip measures how much light it gets.",
        "A lens draws a picture on a chip that measures light.",
    ),
    Topic(
        (
            "why do we sleep?",
            "why do people sleep?",
            "what is sleep good for?",
            "explain why we sleep.",
        ),
        "While you sleep, your body repairs itself. Your brain sorts what you learned and clears away what it does not need.",
        "Sleep repairs the body and sorts the memory.",
    ),
    Topic(
        ("why do we dream?", "what are dreams?", "where do dreams come from?", "explain dreams."),
        "Nobody knows for sure. It seems that the brain plays with memories while it sorts them.",
        "The brain plays with its memories.",
    ),
    Topic(
        (
            "how does the heart work?",
            "what does the heart do?",
            "explain the heart.",
            "why does the heart beat?",
        ),
        "The heart is a muscle with four rooms. It pumps blood to the lungs to get oxygen, and then to the whole body.",
        "The heart pumps blood to the lungs and the body.",
    ),
    Topic(
        ("how do we hear?", "how does the ear work?", "how do ears work?", "explain how we hear."),
        "Sound shakes a thin skin in your ear. Three tiny bones pass the shaking on, and small hairs turn it into signals for the brain.",
        "The ear turns shaking air into signals for the brain.",
    ),
    Topic(
        ("how do we see?", "how does the eye work?", "how do eyes work?", "explain the eye."),
        "Light enters through the pupil, and the lens makes a picture on the back of the eye. Nerves carry that picture to the brain.",
        "The eye makes a picture of light and sends it to the brain.",
    ),
    Topic(
        ("why is blood red?", "what makes blood red?", "why does blood look red?"),
        "Blood carries oxygen with the help of iron. Iron with oxygen is red, like rust.",
        "The iron in blood makes it red.",
    ),
    Topic(
        (
            "why do we yawn?",
            "what makes us yawn?",
            "why do people yawn?",
            "why is yawning catching?",
        ),
        "Yawning may cool the brain and wake us up. It spreads because we copy each other without thinking.",
        "Yawning may help to wake up the brain.",
    ),
    Topic(
        (
            "why do cats purr?",
            "how do cats purr?",
            "why does my cat purr?",
            "what does it mean when a cat purrs?",
        ),
        "Cats purr when they feel safe, and also when they want to calm themselves. The sound comes from quick movements in the throat.",
        "Cats purr to say that they feel safe.",
    ),
    Topic(
        (
            "how do bees make honey?",
            "why do bees make honey?",
            "explain how bees make honey.",
            "what do bees do with honey?",
        ),
        "Bees collect nectar from flowers and carry it home. They thicken it with their wings, and store it as food for the winter.",
        "Bees thicken nectar and store it for the winter.",
    ),
    Topic(
        ("how do birds fly?", "why can birds fly?", "how can birds fly?", "explain how birds fly."),
        "Birds have strong wings and light, hollow bones. They push the air down with each beat, and that lifts them up.",
        "Birds push the air down with their wings.",
    ),
    Topic(
        (
            "how do fish breathe?",
            "how can fish breathe?",
            "why can fish breathe under water?",
            "explain how fish breathe.",
        ),
        "Fish take in water through the mouth and let it flow over their gills. The gills take the oxygen out of the water.",
        "Fish take oxygen from the water with their gills.",
    ),
    Topic(
        (
            "why did the dinosaurs die?",
            "what happened to the dinosaurs?",
            "what killed the dinosaurs?",
            "tell me about the dinosaurs.",
        ),
        "A giant rock from space hit the earth 66 million years ago. Dust hid the sun for a long time, and most plants and animals died.",
        "A giant rock from space changed the climate.",
    ),
    Topic(
        (
            "what is climate change?",
            "why is it getting warmer?",
            "explain climate change.",
            "what causes climate change?",
        ),
        "When we burn coal, oil and gas, we add a gas to the air that keeps heat in. So the whole earth becomes warmer, and the weather changes.",
        "Gas from burning coal and oil keeps heat in the air.",
    ),
    Topic(
        (
            "why does ice float?",
            "why does ice swim on water?",
            "why is ice lighter than water?",
            "explain why ice floats.",
        ),
        "When water freezes, its parts line up and take more room. So ice is lighter than water, and it floats.",
        "Ice takes more room than water, so it is lighter.",
    ),
    Topic(
        (
            "why does bread rise?",
            "what does yeast do?",
            "how does yeast work?",
            "what makes bread rise?",
        ),
        "Yeast eats the sugar in the dough and makes gas. The gas is caught in small bubbles, and the dough grows.",
        "Yeast makes gas, and the gas lifts the dough.",
    ),
    Topic(
        (
            "why do onions make you cry?",
            "why do onions make me cry?",
            "why do I cry when I cut onions?",
        ),
        "When you cut an onion, it sets free a sharp gas. Your eyes make tears to wash it away.",
        "Onions set free a gas that burns in the eyes.",
    ),
    Topic(
        (
            "why is the grass green?",
            "what makes plants green?",
            "why are plants green?",
            "why are leaves green?",
        ),
        "Plants catch sunlight with a green dye. It uses red and blue light and sends the green back to our eyes.",
        "The dye that catches light in plants is green.",
    ),
    Topic(
        (
            "what is a desert?",
            "why are deserts dry?",
            "explain deserts.",
            "how does a desert form?",
        ),
        "A desert is a place where almost no rain falls. Dry air sinks there, and mountains may keep the clouds away.",
        "A desert is a place with almost no rain.",
    ),
)

JOKES: tuple[str, ...] = (
    "Why did the cookie go to the doctor? Because it felt crumbly.",
    "What do you call a bear without teeth? A gummy bear.",
    "Why did the bicycle fall over? Because it was two tired.",
    "What do you call cheese that is not yours? Nacho cheese.",
    "Why can't your nose be 12 inches long? Because then it would be a foot.",
    "What did the ocean say to the beach? Nothing, it just waved.",
    "Why did the scarecrow win a prize? He was outstanding in his field.",
    "What do you call a fish without an eye? A fsh.",
    "Why did the computer go to the doctor? It had a virus.",
    "What has four wheels and flies? A garbage truck.",
)

RIDDLES: tuple[tuple[str, str], ...] = (
    ("What has hands but cannot clap?", "The answer is a clock."),
    ("What gets wetter the more it dries?", "The answer is a towel."),
    ("What has a neck but no head?", "The answer is a bottle."),
    ("What has keys but opens no door?", "The answer is a piano."),
    ("What can you catch but not throw?", "The answer is a cold."),
    ("What goes up but never comes down?", "The answer is your age."),
)

STORIES: dict[str, str] = {
    "a fox": "A young fox wanted to touch the moon. He climbed the highest hill, but the moon was still far away. Then he saw it in a pond, and touched the water. All night long he had the moon for himself.",
    "a dragon": "Once there was a small dragon who could not breathe fire. He only breathed warm air. In the coldest winter the whole village came to sit with him. From then on he was never alone.",
    "a robot": "A robot watered a dry garden every day. Nobody had told it to. In spring the first flower opened, and the robot learned what waiting is good for.",
    "a princess": "A princess lived in a tower without a door. She did not wait for a prince. She tied her books together, made stairs of them, and walked away into the world.",
    "a mouse": "A little mouse found a big piece of cheese. It was too heavy to carry, so she called her friends. There was less for each of them, but it tasted better.",
    "a pirate": "An old pirate had a map, but he could not read it. A girl read it for him. The treasure was his own house, which he had left long ago.",
    "a cat": "A cat sat at the window every evening and watched the rain. One day she went out and got wet. She found that the rain smells better than it looks.",
    "a dog": "A dog waited at the station every day at five. One day his master came home on foot. They both laughed, and since then they walk together.",
    "a ghost": "A ghost was afraid of people. One night a child asked him for a glass of water. He brought it, and then he was not afraid anymore.",
    "a king": "A king wanted to own the sea. He filled a cup with it and took it home. The sea did not mind, and the king was thirsty.",
}

SPACE_FACTS: tuple[str, ...] = (
    "Did you know that honey never goes bad?",
    "Did you know that an octopus has three hearts?",
    "Did you know that bananas are berries, but strawberries are not?",
    "Did you know that a day on Venus is longer than its year?",
    "Did you know that cows have best friends?",
    "Did you know that sound is faster in water than in air?",
    "Did you know that the heart of a blue whale is as big as a small car?",
    "Did you know that there are more stars than grains of sand on all beaches?",
)

POEMS: tuple[str, ...] = (
    "The rain falls soft, the night is long. The wind outside has lost its song. But in the morning, bright and new, the sun will find its way to you.",
    "A little bird upon a tree looked down and sang a song for me. It asked for nothing, stayed a while, and left me with a morning smile.",
    "The sea is wide, the boat is small. The stars are watching over all. Row on, row on, the shore is near, and someone calls for you to hear.",
)
