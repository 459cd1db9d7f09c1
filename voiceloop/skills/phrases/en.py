"""English requests, and answers to them."""

from __future__ import annotations

from datetime import date, datetime

from voiceloop.languages.en import NUMBERS
from voiceloop.skills.phrases.phrases import Phrases
from voiceloop.skills.words import NumberWords


class _English(Phrases):
    def time(self, moment: datetime) -> str:
        """`3:42 PM`."""
        hour = moment.hour % 12 or 12
        return f"{hour}:{moment.minute:02} {'PM' if moment.hour >= 12 else 'AM'}"

    def date(self, day: date, *, year: bool = False) -> str:
        """`Thursday, November 26`."""
        said = f"{self.weekday(day.weekday())}, {self.month(day.month)} {day.day}"
        return f"{said}, {day.year}" if year else said


_LEADS = (
    "hey|hi|hello|okay|ok|so|well|um|uh|umm|uhm|er|oh|and|alright|all right|right|now|please|then|yeah"
    "|yes|no|actually|sorry|excuse me|listen|computer|assistant|voiceloop|hmm|just|but|good|great"
    "|thanks|thank you|cool|nice|perfect|quickly|quick question"
    "|(can|could|will|would) you|i (want|need) you to|(i would|id) like you to|go ahead and"
    "|i was wondering [if you (can|could)]|(can|may|could) i ask [you]|can i (get|have)"
    "|do me a favor and|lets|would you mind"
)
_TAILS = (
    "please|now|right now|thanks|thank you|for me|then|if you (can|could|would|please|dont mind)"
    "|okay|ok|will you|would you|can you|could you|immediately|at once|dear|computer|assistant"
    "|my friend|at the moment|currently|exactly|real quick|quickly|buddy|man|again please|by the way"
)
_NAMED = {
    "ask": "[tell me|give me|say|let me know|show me|do you [happen to] know|i (want|need) to know"
    "|(i would|id) (like|love) to know|[do you have] any idea|i wonder|i am wondering|im wondering"
    "|find out|check|quickly tell me|remind me|hows about]",
    "what is": "(what is|whats|what are|what was|what would be|what will be)",
    "calc": "(what is|whats|what are|what does|what do|how much is|how much are|how much does"
    "|how much do|calculate|compute|work out|figure out|solve|evaluate|tell me"
    "|(what is|whats) the (answer|result|solution|value) (of|to|for)"
    "|what do (you|i|we) get (for|from|with|if you|if i|if we|when you|when i)|what happens if you)",
    "set": "(set|sit|start|create|make|put on|put|begin|add|give me|run|i need|i want|(i would|id) like"
    "|let me have|open|launch|get me|set up|have|activate|turn on|do)",
    "a": "(a|an|the|another|one more|my|new|1 more|1)+",
    "again": "(again|once more|1 more time|once again|another time|a second time|1 time more)",
    "bit": "(a bit|a little|a little bit|a tad|much|even|way|slightly|somewhat|a lot|a touch|still)",
    "mine": "(the|my|that|this|our|your|any)",
    "timer": "{what:thing}",
    "speak": "(speak|talk|say it|say that|be|read|go|sound|make it|make your voice|get)",
    "stopping": "(stop|stop it|stop that|stop this|stop there|stop now|stop here|stop please"
    "|stop (talking|speaking|reading|it now|right there|right now|already|telling me [that|this])"
    "|stop [(telling|reading)] [me] (the|this|that|your) (story|reply|answer|joke|list|explanation)"
    "|be quiet|be silent|quiet|quiet please|shut up|shush|hush|silence|shh|enough|thats enough"
    "|that is enough|enough of (that|this)|i have heard enough|ive heard enough|(that|this) will do"
    "|thatll do|never mind|nevermind|forget it|forget (about|all about) (it|that)|forget that"
    "|dont say anything [more]|no more|no more talking|cut it out|knock it off|give it a rest"
    "|wait|wait (a|1) (second|sec|minute|moment)|hold on|hold on (a|1) (second|sec|minute|moment)"
    "|hang on|(1|a|just a) moment|give me a (second|sec|minute|moment)|pause|cancel"
    "|dont (talk|speak) [anymore|any more]|stop stop|ok stop|okay stop)",
    "thanking": "(thank you|thanks|thank you [so|very] much|thank you a lot|thanks a lot|many thanks"
    "|thanks [so|very] much|thanks a (bunch|million|ton)|thx|cheers|much appreciated|thank you kindly"
    "|i (really)+ appreciate (it|that|your help)|i appreciate (it|that|your help)|big thanks)"
    " [for (that|this|the (help|info|information|answer|tip|advice|joke|story)|your (help|time|answer"
    "|patience)|everything|helping [me]|telling me|the (quick|nice|good) answer|all your help)]",
    "praise": "(great|perfect|awesome|nice|cool|good|wonderful|excellent|lovely|brilliant|amazing|sweet"
    "|super|fantastic|okay|ok|alright|all right|right|well|oh|ah|good job|well done|very good"
    "|(thats|that is|that was|this was|youre|you are|you have been|youve been) [very|so|really|just]"
    " (great|perfect|awesome|nice|cool|good|wonderful|excellent|lovely|brilliant|amazing|helpful"
    "|kind|sweet|the best|interesting|useful)|very helpful|so helpful|that helps|that helped [a lot|me])",
    "bye": "(goodbye|good bye|bye|bye bye|byebye|bye for now|goodbye for now|farewell|so long|cheerio"
    "|ciao|see you [soon|later|tomorrow|around|then|again|next time|next week|tonight|in the morning]"
    "|see ya [soon|later|tomorrow|around]|catch you later|talk to you [soon|later|tomorrow|again]"
    "|talk later|later alligator|until (next time|tomorrow|later)|till (next time|tomorrow|later)"
    "|take care|have a (good|great|nice|lovely|wonderful) (day|one|night|evening|weekend|time)"
    "|i (have to|need to|must|should|gotta|got to|will) (go|leave|run|be off|head out|hang up)"
    "|(ive|i have) got to (go|leave|run|be off)|i (am|will be) (going|leaving|off)|im (off|leaving|going"
    "|out|out of here|heading out)|i will talk to you later|ill (talk to|see) you [later|soon|tomorrow]"
    "|time to go|thats it for (today|now|me)|(lets|we can) (stop|end|finish) [it] here"
    "|(end|stop|finish|quit|close|leave|exit) (the|this|our) (conversation|talk|chat|session|program"
    "|app|call)|hang up|quit|exit|were done [here]|we are done [here]|im done|i am done)",
    "night": "(good night|goodnight|night night|nighty night|sleep well|sweet dreams|sleep tight)",
    "done": "(thats all|that is all|that will be all|thatll be all|that was all|thats everything"
    "|that is everything|nothing else|no more questions|i have no more questions|im all set"
    "|i am all set|were all set|that would be all|all done|thats it|that is it)"
    " [for (now|today|me|the moment|tonight)|i (need|needed|wanted)]",
    "name": "(assistant|computer|my friend|dear|everyone|everybody|then|now|there|all|voiceloop)",
    "cancel": "(cancel|stop|delete|remove|end|kill|clear|turn off|switch off|shut off|disable|abort"
    "|dismiss|reset|drop|get rid of|unset|quit|silence|take off|erase)",
    "when": "([at|for] {time} [on|for] [{day}]|[on|for] {day} [at|for] {time})",
    "amount": "({amount}|[a|an|1] {v:unit})",
}
_RULES = {
    "time": (
        "<ask> what time (is it|it is|is it now|do we have|do you have|have you got)",
        "<ask> (what|whats) time is it",
        "<ask> <what is> [the] [current|exact|correct|local|right|actual] time [of day|of the day|here]",
        "<ask> (what is|whats) the [current|exact|local] time (is|it is|is it)",
        "<ask> what the [current|exact|correct|local] time is [here]",
        "(tell me|give me|i need|say|show me|check) the [current|exact|correct|local] time",
        "[the] current time",
        "time check",
        "(do you have|have you got|you got|got|do you know) the [right|correct|exact] time",
        "how late is it [already]",
        "what hour is it",
    ),
    "time_in": (
        "<ask> what time (is it|it is) [right now|now|currently|at the moment] [over] in {city} [time]",
        "<ask> <what is> the [current|local|exact] time [now|right now|currently] [over] in {city}",
        "<ask> what the [current|local] time (is in {city}|in {city} is)",
        "(tell me|give me|check) the [current|local] time in {city}",
        "[the] [current|local] time in {city}",
        "<ask> what time (do they|do people) have in {city}",
        "how late is it in {city}",
        "in {city} what time is it",
        "<ask> [<what is>] {city} time",
    ),
    "time_later": (
        "<ask> what time (will it be|is it|it will be|will we have|would it be|it is"
        "|is it going to be|it is going to be) (in {duration}|{duration} (from now|later))",
        "<ask> what (will|would) the time be (in {duration}|{duration} (from now|later))",
        "<ask> <what is> the time (in {duration}|{duration} from now)",
        "in {duration} what time (will it be|is it|will we have)",
        "<ask> what time [is] {duration} from now",
    ),
    "time_ago": (
        "<ask> what time (was it|is it|it was) {duration} ago",
        "<ask> what was the time {duration} ago",
        "{duration} ago what time was it",
    ),
    "day": (
        "<ask> <what is> [the] [exact|current|full] date [of|for|on|like] [{day}]",
        "<ask> what [the] date (is it|it is|is|will it be|was it|was|it was|do we have) [on|for] [{day}]",
        "<ask> what the [exact|current] date (is|was) [{day}]",
        "<ask> [<what is>] [the] {day} [the] date",
        "(tell me|give me|i need) the [exact|current] date [of|for|on] [{day}]",
        "(todays|the current) date",
        "<ask> (what|which|whats) (day|date|weekday|day of the week|day of the month) (is it|it is|is"
        "|was it|was|will it be|it will be|will be|are we|do we have|it was|is it going to be)"
        " [on] [{day}]",
        "<ask> (what|which) (day|weekday|day of the week|date) (is|was|will) {day} [be|fall on|on|in]",
        "<ask> [on] (what|which) (day|weekday|day of the week|date) (does|do|did|is|will|was) {day}"
        " [fall|be|is] [on]",
        "<ask> <what is> the (day|weekday|day of the week|date) [of] [{day}]",
        "(when|what date|which date) (is|was|does|will) {day} [be|fall|on|this year]",
        "whens {day} [this year]",
        "<ask> what day (of the week)+ is it [{day}]",
        "(what is|whats) today",
    ),
    "day_after": (
        "<ask> (what|which) (day|weekday) [of the week] (comes|is|follows|will come|goes|it is|comes next)"
        " [right|directly|straight] [after] {weekday}",
        "<ask> what (comes|follows) [right] after {weekday}",
        "<ask> <what is> the [next] day after {weekday}",
    ),
    "day_before": (
        "<ask> (what|which) (day|weekday) [of the week] (comes|is|precedes|came|goes|it is)"
        " [right|directly|just] (before|precedes) {weekday}",
        "<ask> what (comes|is|day precedes) [right] before {weekday}",
        "<ask> <what is> the day before {weekday}",
    ),
    "month": (
        "<ask> (what|which) month (is it|it is|are we in|do we have|is this|is it now)",
        "<ask> <what is> the [current] month",
    ),
    "year": (
        "<ask> (what|which) year (is it|it is|are we in|do we have|is this|is it now)",
        "<ask> <what is> the [current] year",
    ),
    "week": (
        "<ask> (what|which) [calendar] week [number] (is it|it is|are we in|do we have|is this)",
        "<ask> <what is> the [current] [calendar] week [number]",
    ),
    "days_until": (
        "<ask> [in] how many [more|full] {p:period} (are there|are|is it|it is|there are|left|remain"
        "|do i have|do we have|to go|are left|are there left|until|till|remaining|away is|off is"
        "|is|are still left)+ [left|still] (until|till|to|before|til|it is|its)+ {day}",
        "<ask> how many [more|full] {p:period} (until|till|to|before|til|away is|away|off is|left until"
        "|left till|left to) {day} [is]",
        "<ask> how long (is it|it is|do i have|do we have|do i have to wait|do we have to wait|to go"
        "|to wait|is left|left)+ (until|till|to|before|til) {day}",
        "<ask> how long (until|till|before|til) {day} [comes]",
        "<ask> how (far away|far off|soon) is {day}",
        "[number of] {p:period} (until|till|to|before) {day}",
    ),
    "days_since": (
        "<ask> how many {p:period} (ago was|since|is it since|has it been since|have passed since"
        "|has passed since|was it since|ago is) {day}",
        "<ask> how long (ago was|is it since|has it been since|since) {day}",
    ),
    "time_until": (
        "<ask> how (long|much time|many hours|many minutes) (is it|it is|do i have|do we have|left"
        "|is left|are left|is there|are there|to go|are there left)+ (until|till|to|before|til) {time}",
        "<ask> how (long|much time|many hours|many minutes) (until|till|before|to|til) {time}",
    ),
    "timer": (
        "[<set>] [<a>] (timer|timers|time|countdown|count down) [for|of|to|on|with|at|in|from] {duration}"
        " [from now] [long]",
        "[<set>] [<a>] (timer|timers|countdown) [for|of|to|on|with|at] {duration} [from now]"
        " (called|named|labeled|for|with the name) [the|my|a] {name:words}",
        "[<set>] [<a>] {duration} [long] (timer|timers|countdown|count down) [timer]",
        "[<set>] [<a>] {duration} (timer|countdown) (called|named|labeled|for) [the|my|a] {name:words}",
        "[<set>] [<a>] {name:label} (timer|countdown) [for|of|to|on|with|at] {duration}",
        "[<set>] [<a>] {duration} {name:label} timer",
        "[<set>] [<a>] timer (called|named|labeled) {name:label} [for|of|to|on|with] {duration}",
        "[<set>] [<a>] timer for [the|my] {name:label} [for|of|to|on|at] {duration}",
        "(count down|time) [from|for|me for] {duration}",
        "(tell|alert|notify|remind|ring|wake|call|ping|warn|let) (me|us) [know|up] (in|after) {duration}",
        "[<set>] [<a>] (alarm|reminder) (in|for) {duration} [from now]",
        "in {duration} (tell|remind|wake|alert|ring|call) me [up]",
        "(the|a) timer should (ring|go off) in {duration}",
    ),
    "timer_asks": (
        "<set> [<a>] (timer|countdown)",
        "(start|set) timer",
        "(i need|i want|i would like|id like) a timer",
    ),
    "duration": ("[for|in|make it|let us say|lets say|maybe|about|to] {duration}",),
    "alarm": (
        "[<set>] [<a>] (alarm|alarms|alarm clock) [clock] [for|at|to|on] <when>",
        "(ring|call|alarm) [me] <when>",
        "[<set>] [<a>] <when> alarm",
    ),
    "wake": (
        "(wake|get) (me|us) [up] <when>",
        "i (need|want|have) to (wake|get|be) up <when>",
        "[<set>] [<a>] (wake up|wakeup) call [for|at] <when>",
    ),
    "reminder": (
        "(remind|tell) me [to|about|of|that] {name:words} (in|after) {duration}",
        "(remind|tell) me (in|after) {duration} (to|about|of|that) {name:words}",
        "[<set>] [<a>] reminder (in|for) {duration} (to|about|of|that|for) {name:words}",
    ),
    "reminder_at": (
        "remind me [to|about|of|that] {name:words} <when>",
        "remind me <when> (to|about|of|that) {name:words}",
    ),
    "timer_left": (
        "<ask> how (much|long|much more|much longer) [time|longer] (is|do i have|do we have|is there|does"
        " it have|are|has)+ (left|remaining|to go|still left)+ [on|in|for|of] [<mine>] [{name:label}]"
        " [<timer>]",
        "<ask> how (much|long|much more|much longer|many minutes|many seconds) [time] [is|are|do i have"
        "|is there|does] [left|remaining|still] (on|in|for|of|does)+ <mine> [{name:label}] <timer>"
        " [have|still have|left|take|run|going to take|have left]",
        "<ask> how (long|much longer|much time|many minutes) [is it|left] (until|till|before|to) [<mine>]"
        " [{name:label}] <timer> (rings|goes off|is over|is done|ends|finishes|runs out|goes|is up|is)",
        "<ask> when (does|will|is|do|are) [<mine>] [{name:label}] <timer> (ring|go off|end|finish|be over"
        "|be done|run out|over|done|up|going to ring|ringing|due|be up|expire|set for|set)",
        "<ask> <what is> (left|the time left|the status|the state|the remaining time|remaining)"
        " (on|of|for) [<mine>] [{name:label}] <timer>",
        "(check|show|read|tell me about) [me] [<mine>] [{name:label}] <timer>",
        "<timer> status",
        "<ask> (which|what|how many) [other] <timer> (do i have|are there|are set|are running|are on"
        "|are active|have i set|did i set|do we have) [set|running|on|active|going|left|now]",
        "(list|show|read|tell me) [me] [all] [of] [<mine>] <timer>",
        "(is|are) (there|any|a|my|the)+ <timer> [still] (running|set|on|active|going)",
        "do i have [a|any] <timer> [set|running|on|active|going|left]",
        "how is my {name:label} timer doing",
        "hows [my|the] [{name:label}] timer [doing|looking|going]",
    ),
    "timer_cancel": (
        "<cancel> [<mine>] [{name:label}] <timer> [off|please]",
        "<cancel> [<mine>] {duration} (timer|countdown)",
        "<cancel> [<mine>] (timer|reminder|countdown) (for|of|about) [the|my] ({duration}|{name:label})",
        "<cancel> <mine> alarm (for|at) {time}",
        "(turn|switch|shut) [<mine>] [{name:label}] <timer> off",
        "i (dont|do not) need [<mine>] [{name:label}] <timer> [anymore|any more|any longer]",
        "(forget|no more) [about] [<mine>] [{name:label}] <timer>",
    ),
    "timer_cancel_all": (
        "<cancel> (all|all of|every|both|all the|each) [of] [<mine>] <timer>",
        "<cancel> [<mine>] (timers|alarms|reminders)",
        "<cancel> (all of them|them all|everything)",
    ),
    "sum": ("<ask> [<calc>] {sum} [equal|equals|make|makes|is|come to|give|be|equal to|total]",),
    "convert": (
        "<ask> how many {u:unit} (are|is|make|makes|make up|do you get from|do you get out of|are there"
        "|there are|fit|go|does|do|have|are there in|can you get from|in)+ [in|into|to|from] <amount>"
        " [have|has|make|equal|contain|long|be|is|are]",
        "<ask> [<calc>] <amount> (in|to|into|as|expressed in|converted to|converted into|measured in)"
        " {u:unit}",
        "<ask> how (much|many|long|heavy|far|hot|cold|warm|big|tall|high|fast) (is|are) <amount> in {u:unit}",
        "(convert|change|turn|translate|transform) <amount> (to|into|in) {u:unit}",
        "<ask> how many {u:unit} [is|are|in|to|per] <amount> [is|are|equal]",
        "<ask> what (is|are) <amount> [equal|equivalent] (to|in) {u:unit}",
    ),
    "recall": (
        "<ask> what (did|have) i [just|last] (ask|asked|say|said|tell|told|want|wanted) [you|to know]"
        " [just now|before|now|last|a moment ago|previously|right before|earlier]",
        "<ask> what i [had|have|ve|just|last]+ (asked|said|told|wanted) [you|to know]"
        " [just now|before|now|last|a moment ago|earlier]",
        "<ask> what i (asked|said|told) [you] [just now|before|last|a moment ago|earlier]",
        "<ask> what (was|is|were) (my|the) (last|previous|latest|recent|most recent)+ (question|request"
        "|thing|sentence) [i (asked|said|told)] [you] [again]",
        "<ask> what was my question [again]",
        "<ask> what was i [just] (asking|saying|talking about)",
        "(repeat|say|read back|tell me|remind me of|read|quote) (my|the) [last|previous] (question|request)"
        " [i asked] [again|back|to me|back to me|once more]",
        "(repeat|say) what i [just] (asked|said) [you] [again]",
        "do you [still] (remember|know) what i [just] (asked|said) [you]",
        "(what did i say|what i said) [again]",
    ),
    "recall_first": (
        "<ask> what (did|have) i (ask|asked|say|said|tell|told) [you] (first|at first|first of all"
        "|in the beginning|at the beginning)",
        "<ask> what was (my|the) (first|very first) (question|request|thing) [i (asked|said|told)] [you]",
        "<ask> what was the (first|very first) thing i (asked|said|told) [you]",
    ),
    "repeat": (
        "(say|tell me|read|give me) (that|it|this|what you said|the answer|the last (bit|part|sentence))"
        " <again> [slowly|for me]",
        "repeat [that|it|this|yourself|what you [just] said|the [last] (answer|part|sentence|bit)"
        "|your [last] (answer|reply|sentence|response|words)|the last thing you said] [<again>] [for me]",
        "say [that] again",
        "<again>",
        "come again",
        "what did you [just] say [again|just now]",
        "what was that [again]",
        "pardon [me]",
        "i beg your pardon",
        "[sorry] i (didnt|did not|couldnt|could not|cant|cannot) [quite] (hear|catch|get|understand"
        "|make out|follow) (that|you|it|what you said|a word|this)",
        "what (have you|you) [just] said [again]",
        "(i missed that|i missed it|you what)",
    ),
    "stop": ("[<praise>] (<stopping> )+ [<praise>] [<thanking>] [<name>]",),
    "undo": ("cancel (that|it|this)", "undo [that|it|this]", "take that back", "dont do that"),
    "thanks": (
        "(<praise> )+ (<thanking> )+ [<praise>] [<name>]",
        "(<thanking> )+ [<praise>] [<name>]",
    ),
    "done": (
        "[<praise>] [<thanking>] [<praise>] [no] <done> [<praise>] (<thanking> )+ [<name>]",
        "[<praise>] (<thanking> )+ [no] <done> [<name>]",
    ),
    "goodbye": (
        "[<praise>] [<praise>] [<thanking>] [<praise>] [<done>] [<thanking>] [<name>] (<bye> )+ [<name>]"
        " [<thanking>] [<bye>]",
    ),
    "night": (
        "[<praise>] [<thanking>] [<done>] [<bye>] (<night> )+ [<name>] [<bye>] [<thanking>]"
        " [(and|then)] [<night>]",
    ),
    "louder": (
        "[<speak>] [<bit>] (louder|more loudly|more loud)",
        "(speak|talk) [<bit>] up [<bit>]",
        "(turn|crank) (it|the volume|the sound|your voice|your volume|yourself) up [<bit>]",
        "(turn|crank|put) up (the|your)+ (volume|sound|voice) [<bit>]",
        "(increase|raise|boost) (the|your)+ (volume|sound|voice|loudness) [<bit>]",
        "[make] [the] volume [<bit>] (up|higher|louder) [<bit>]",
        "(i can|i could) (hardly|barely) hear you",
        "i (cant|cannot|can not) hear you [well|very well|properly]",
        "(youre|you are|thats|that is|its|it is|your voice is) [<bit>] (too|so)+ (quiet|soft|low|silent)",
        "(too quiet|not loud enough)",
        "[speak] with a louder voice",
    ),
    "softer": (
        "[<speak>] [<bit>] (softer|quieter|less loud|more quietly|more softly|less loudly|lower)",
        "(lower|reduce|decrease) (the|your)+ (volume|voice|sound|loudness) [<bit>]",
        "(turn|tone) (it|the volume|the sound|your voice|your volume|yourself) down [<bit>]",
        "(turn|put) down (the|your)+ (volume|sound|voice) [<bit>]",
        "[make] [the] volume [<bit>] (down|lower) [<bit>]",
        "(not so|not that|less) loud",
        "dont (shout|scream|yell) [at me] [so loud|like that]",
        "(youre|you are|thats|that is|its|it is|your voice is) [<bit>] (too|so)+ loud",
        "too loud",
        "(speak|talk) [<bit>] [more] quietly",
    ),
    "slower": (
        "[<speak>] [<bit>] (slower|more slowly|more slow|less fast|less quickly|slowly)",
        "(slow|slow it|slow yourself) down [<bit>]",
        "(not so|not that) (fast|quick|quickly)",
        "(dont|do not) (speak|talk|read|go) (so|that|too) (fast|quickly)",
        "(youre|you are|thats|that is|its|it is) [(speaking|talking|going|reading)] [<bit>]"
        " (too|so|way too)+ (fast|quick)",
        "you (speak|talk|read) [<bit>] (too|so|way too)+ (fast|quickly)",
        "too fast",
        "(reduce|lower|decrease) (your|the)+ [speaking|talking] (speed|pace|tempo) [<bit>]",
        "take it [<bit>] slower",
    ),
    "faster": (
        "[<speak>] [<bit>] (faster|quicker|more quickly|less slowly|more fast)",
        "(speed|hurry|speed it|pick it) up [<bit>]",
        "(not so|not that) (slow|slowly)",
        "(dont|do not) (speak|talk|read|go) (so|that|too) slowly",
        "(youre|you are|thats|that is|its|it is) [(speaking|talking|going|reading)] [<bit>]"
        " (too|so|way too)+ slow",
        "you (speak|talk|read) [<bit>] (too|so|way too)+ (slow|slowly)",
        "too slow",
        "(increase|raise) (your|the)+ [speaking|talking] (speed|pace|tempo) [<bit>]",
    ),
    "normal": (
        "[go|come|switch|get] (back|return) to [(the|your)+] (normal|usual|default|regular)"
        " [speed|volume|voice|pace|loudness]",
        "[(speak|talk|be|sound)] [again] (normal|normally|as usual|as before|like before) [again|speed"
        "|volume]",
        "(use|take) (your|the) (normal|usual|default) (speed|volume|voice|pace)",
        "normal (speed|volume|voice|pace|loudness)",
        "reset [(the|your)+] (speed|volume|voice|pace|loudness)",
    ),
}

ENGLISH = _English(
    "en",
    words=NumberWords(
        NUMBERS,
        variants=(("and", ""),),
        more={"hundred": 100},
        scales={"thousand": 1000, "million": 10**6, "billion": 10**9},
        joins=frozenset({"and"}),
        point=frozenset({"point"}),
    ),
    articles=frozenset({"a", "an", "one"}),
    hours24=False,
    leads=_LEADS,
    tails=_TAILS,
    named=_NAMED,
    rules=_RULES,
    times=(
        ("{h:hour} [oclock] [{p:half}]", 0, 0),
        ("{t:written} [oclock] [{p:half}]", 0, 0),
        ("{h:hour} [oh|o|and] {m:minute} [{p:half}]", 0, 1),
        ("half [past] {h:hour} [{p:half}]", 30, 0),
        ("[a] quarter (past|after) {h:hour} [{p:half}]", 15, 0),
        ("[a] quarter (to|of|before|till) {h:hour} [{p:half}]", -15, 0),
        ("{m:minute} [minutes|minute] (past|after) {h:hour} [{p:half}]", 0, 1),
        ("{m:minute} [minutes|minute] (to|before|till) {h:hour} [{p:half}]", 0, -1),
        ("[12] (noon|midday)", 720, 0),
        ("[12] midnight", 0, 0),
    ),
    halves={
        "am": "am|a m|in the morning|this morning|tomorrow morning",
        "pm": "pm|p m|in the (afternoon|evening)|at night|tonight|this (afternoon|evening)",
    },
    weekdays=(
        *("Monday|mondays|mon", "Tuesday|tuesdays|tue", "Wednesday|wednesdays|wed"),
        *("Thursday|thursdays|thu", "Friday|fridays|fri", "Saturday|saturdays|sat"),
        "Sunday|sundays|sun",
    ),
    months=(
        *("January|jan", "February|feb", "March|mar", "April|apr", "May", "June|jun", "July|jul"),
        *("August|aug", "September|sep|sept", "October|oct", "November|nov", "December|dec"),
    ),
    days={
        "today": "today|todays|now",
        "tomorrow": "tomorrow|tomorrows",
        "after tomorrow": "[the] day after tomorrow",
        "yesterday": "yesterday|yesterdays",
        "before yesterday": "[the] day before yesterday",
        "later": "in {n:count} {p:period} [time]|{n:count} {p:period} (from now|from today|later)",
        "ago": "{n:count} {p:period} ago",
        "weekday": "[on] [this] [coming] {w:weekday}",
        "next": "[on] (next|the next|the coming) {w:weekday}",
        "last": "[on] last {w:weekday}",
        "date": "[on] [the] {d:ordinal} [of] {m:month} [{y:year}]|[on] {m:month} [the] {d:ordinal}"
        " [{y:year}]|[on] the {d:ordinal} [of (this|the) month]",
        "feast": "[on] {f:feast} [this year|{y:year}|in {y:year}]",
    },
    periods={
        "day": "day days|sleeps",
        "week": "week weeks",
        "month": "month months",
        "year": "year years",
    },
    feasts={
        "12-25": "christmas|christmas day|xmas|x mas",
        "12-24": "christmas eve",
        "1-1": "new year|new years|new years day|the new year",
        "12-31": "new years eve|new year eve",
        "10-31": "halloween",
        "2-14": "[saint|st] valentines day|valentine day",
        "3-17": "[saint|st] patricks day",
        "7-4": "independence day|the 4th of july",
        "4-1": "april fools [day]",
        "easter": "easter|easter sunday",
        "thanksgiving": "thanksgiving [day]",
    },
    amounts=(
        ("{n:number} {u:unit}", "0"),
        ("{n:number} and a half {u:unit}", "1/2"),
        ("{n:number} {u:unit} and a half", "1/2"),
        ("(half|half a|half an|1 half|a half) {u:unit}", "1/2"),
        ("{n:number} and (3 quarters|a quarter) {u:unit}", "3/4"),
        ("(a|1) quarter [of] (a|an) {u:unit}", "1/4"),
        ("3 quarters of (a|an) {u:unit}", "3/4"),
    ),
    halved=r"(?!)",
    units={
        "second": "second seconds|sec|secs|s",
        "minute": "minute minutes|min|mins|minuets",
        "hour": "hour hours|hr|hrs|h",
        "day": "day days",
        "week": "week weeks",
        "year": "year years",
        "meter": "meter meters|metre|metres|m",
        "kilometer": "kilometer kilometers|kilometre|kilometres|km|kms",
        "centimeter": "centimeter centimeters|centimetre|centimetres|cm",
        "millimeter": "millimeter millimeters|millimetre|millimetres|mm",
        "inch": "inch inches",
        "foot": "foot feet|ft",
        "yard": "yard yards|yd",
        "mile": "mile miles|mi",
        "nautical mile": "nautical_mile nautical_miles",
        "light year": "light-year light-years|light year|light years",
        "gram": "gram grams|gramme|grammes|g",
        "kilogram": "kilogram kilograms|kilo|kilos|kg|kgs",
        "milligram": "milligram milligrams|mg",
        "ton": "metric_ton metric_tons|ton|tons|tonne|tonnes",
        "ounce": "ounce ounces|oz",
        "pound": "pound pounds|lb|lbs",
        "stone": "stone stones",
        "liter": "liter liters|litre|litres|l",
        "milliliter": "milliliter milliliters|millilitre|millilitres|ml",
        "centiliter": "centiliter centiliters|centilitre|centilitres|cl",
        "deciliter": "deciliter deciliters|decilitre|decilitres|dl",
        "gallon": "gallon gallons",
        "quart": "quart quarts",
        "pint": "pint pints",
        "cup": "cup cups",
        "fluid ounce": "fluid_ounce fluid_ounces|ounce|ounces|oz",
        "tablespoon": "tablespoon tablespoons|tbsp",
        "teaspoon": "teaspoon teaspoons|tsp",
        "cubic meter": "cubic_meter cubic_meters|cubic metre|cubic metres",
        "celsius": "degree_Celsius degrees_Celsius|degrees celsius|degree celsius|celsius|° c|degrees c"
        "|centigrade|degrees centigrade|c|degrees|degree|°",
        "fahrenheit": "degree_Fahrenheit degrees_Fahrenheit|degrees fahrenheit|degree fahrenheit"
        "|fahrenheit|° f|degrees f|f|degrees|degree|°",
        "kelvin": "kelvin|kelvins|degrees kelvin|k",
        "kilometer per hour": "kilometer_per_hour kilometers_per_hour|kilometers an hour"
        "|kilometres per hour|kilometres an hour|km / h|kmh|kph|km per hour|kilometer an hour",
        "mile per hour": "mile_per_hour miles_per_hour|miles an hour|mph",
        "meter per second": "meter_per_second meters_per_second|metres per second|m / s|meters a second",
        "knot": "knot knots",
        "square meter": "square_meter square_meters|square metre|square metres|sqm|m ^ 2",
        "square kilometer": "square_kilometer square_kilometers|square kilometre|square kilometres",
        "square centimeter": "square_centimeter square_centimeters",
        "square foot": "square_foot square_feet|square ft",
        "square mile": "square_mile square_miles",
        "hectare": "hectare hectares",
        "acre": "acre acres",
        "byte": "byte bytes",
        "kilobyte": "kilobyte kilobytes|kb",
        "megabyte": "megabyte megabytes|mb",
        "gigabyte": "gigabyte gigabytes|gb",
        "terabyte": "terabyte terabytes|tb",
        "dozen": "dozen|dozens",
        "piece": "piece pieces|eggs|things|items",
    },
    operators={
        "+": "plus|added to|+",
        "-": "minus|less|take away|-",
        "*": "times|multiplied by|multiplied with|multiply by|x|*|time",
        "/": "divided by|divide by|over|/",
        "%": "percent of|per cent of|% of",
        "%off": "percent off|% off|percent off of",
        "^": "to the power of|to the power|raised to|raised to the power of|^",
        "^2": "squared|square|^ 2",
        "^3": "cubed|^ 3",
        "sqrt": "the square root of|square root of|square root|root of|the root of|√",
        "cbrt": "the cube root of|cube root of|cubic root of|the cubic root of",
        "2*": "double|twice|2 times",
        "3*": "triple|thrice",
        "neg": "negative",
    },
    sums={
        "+": "add {a:number} (and|to|plus|with) {b:number}|[the] sum of {a:number} and {b:number}"
        "|{a:number} and {b:number} (together|added together|added up)",
        "-": "(subtract|take|deduct) {b:number} [away] from {a:number}"
        "|[the] difference (between|of) {a:number} and {b:number}",
        "*": "multiply {a:number} (by|with|and|times) {b:number}"
        "|[the] product of {a:number} and {b:number}",
        "/": "divide {a:number} by {b:number}|[the] quotient of {a:number} and {b:number}"
        "|how (often|many times) does {b:number} (go|fit) into {a:number}",
    },
    parts={
        2: "half halves", 3: "third thirds", 4: "quarter quarters fourth fourths", 5: "fifth fifths",
        6: "sixth sixths", 7: "seventh sevenths", 8: "eighth eighths", 9: "ninth ninths",
        10: "tenth tenths", 100: "hundredth hundredths",
    },
    of="of",
    noise=frozenset({"a", "the"}),
    cities={},
    things={
        "timer": "timer|timers|countdown|countdowns",
        "alarm": "alarm|alarms|alarm clock|wake up call",
        "reminder": "reminder|reminders",
    },
    no_label=frozenset(
        "a an the my new another second minute hour first and or for of to in on at with no all any "
        "time timer alarm set start please day week it that this same long short quick every both "
        "is are was of them next last".split()
    ),
    swaps={"my": "your", "mine": "yours", "i": "you", "me": "you", "myself": "yourself", "im": "you're"},
    says={
        "and": "and",
        "a": "a",
        "minus": "minus",
        "about": "about",
        "it is": "It's",
        "time": "{it_is}.",
        "time in": "{it_is} in {place}.",
        "time in on": "{it_is} on {weekday} in {place}.",
        "time later": "In {span} it will be {time}.",
        "time later on": "In {span} it will be {time} on {weekday}.",
        "time ago": "{span} ago it was {time}.",
        "time ago on": "{span} ago it was {time} on {weekday}.",
        "today": "Today is {date}.",
        "tomorrow": "Tomorrow is {date}.",
        "yesterday": "Yesterday was {date}.",
        "day": "That is {date}.",
        "past day": "That was {date}.",
        "day after": "The day after {weekday} is {other}.",
        "day before": "The day before {weekday} is {other}.",
        "month": "It is {month}.",
        "year": "It is {year}.",
        "week": "It is week {week}.",
        "until day": "It is {count} until {date}.",
        "since day": "That was {count} ago.",
        "today too": "That is today, {date}.",
        "until time": "That is in {span}.",
        "timer set": "Your timer is set for {span}.",
        "named timer set": "Your {name} timer is set for {span}.",
        "timer for how long": "For how long?",
        "alarm set": "Your alarm is set for {time}.",
        "alarm set on": "Your alarm is set for {time} on {weekday}.",
        "alarm set tomorrow": "Your alarm is set for {time} tomorrow.",
        "reminder set": "I will remind you in {span}.",
        "reminder set at": "I will remind you at {time}.",
        "reminder set at on": "I will remind you at {time} on {weekday}.",
        "reminder set at tomorrow": "I will remind you at {time} tomorrow.",
        "too long": "I can keep timers of up to a day.",
        "too many": "I can keep {count} timers at once, and all of them are running.",
        "timer over": "The timer of {span} is over.",
        "named timer over": "The {name} timer is over.",
        "alarm over": "{it_is}. This is your alarm.",
        "reminder over": "I was to remind you: {name}.",
        "left": "{span} left.",
        "left of": "{span} left of {which}.",
        "timer": "the timer of {whole}",
        "named timer": "the {name} timer",
        "alarm": "the alarm at {time}",
        "reminder": "the reminder, {name}",
        "all left": "There are {count}: {list}.",
        "one of all": "{which}, {span} left",
        "no timer": "No timer is running.",
        "no such timer": "There is no such timer.",
        "canceled": "Okay, {which} is canceled.",
        "all canceled": "Okay, all of them are canceled.",
        "which": "Which one? There are {list}.",
        "sum": "{sum} is {value}.",
        "by zero": "Nothing can be divided by zero.",
        "huge": "{value} times 10 to the power of {power}",
        "converted": "{amount} {is} {value}.",
        "is": "is",
        "are": "are",
        "asked": "You asked: {said}",
        "said": "You said: {said}",
        "asked nothing": "You have not asked me anything yet.",
        "nothing said": "I have not said anything yet.",
        "thanks": "You're welcome.",
        "done": "You're welcome. Goodbye!",
        "goodbye": "Goodbye! Take care.",
        "night": "Good night. Sleep well!",
        "louder": "Okay, louder.",
        "softer": "Okay, softer.",
        "slower": "Okay, more slowly.",
        "faster": "Okay, faster.",
        "normal": "Okay, back to normal.",
        "loudest": "That is as loud as I can speak.",
        "softest": "That is as softly as I can speak.",
        "slowest": "That is as slowly as I can speak.",
        "fastest": "That is as fast as I can speak.",
        "one pace": "This voice can only speak at one speed.",
    },
)  # fmt: skip
