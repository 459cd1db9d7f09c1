"""Templates of English requests. `skills.template` explains how they are written."""

from __future__ import annotations

LEADS = (
    "hey|hi|hello|okay|ok|so|well|um|uh|umm|uhm|er|oh|and|alright|all right|right|now|please|then|yeah"
    "|yes|no|actually|sorry|excuse me|listen|computer|assistant|voiceloop|hmm|just|but|good|great"
    "|thanks|thank you|cool|nice|perfect|quickly|quick question"
    "|(can|could|will|would) you|i (want|need) you to|(i would|id) like you to|go ahead and"
    "|i was wondering [if you (can|could)]|(can|may|could) i ask [you]|(can|could|may) i (get|have)|you (can|may)"
    "|do me a favor and|lets|would you mind"
)
TAILS = (
    "please|now|right now|thanks|thank you|for me|then|if you (can|could|would|please|dont mind)"
    "|okay|ok|will you|would you|can you|could you|immediately|at once|dear|computer|assistant"
    "|my friend|at the moment|currently|exactly|real quick|quickly|buddy|man|again please|by the way"
)
NAMED = {
    "ask": "[tell me|telling me|give me|say|let me know|show me|do you [happen to] know|i (want|need) to know"
    "|(i would|id) (like|love) to know|[do you have] any idea|i wonder|i am wondering|im wondering"
    "|find out|check|quickly tell me|remind me|hows about]",
    "what is": "(what is|whats|what are|what was|what would be|what will be)",
    "calc": "(what|what is|whats|what are|what does|what do|how much is|how much are|how much does"
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
    "|dont say anything [more]|no more|no more talking|cut it out|zip it|knock it off|give it a rest"
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
    "|take care|have a (good|great|nice|lovely|wonderful) (day|one|evening|weekend|time)"
    "|i (have to|need to|must|should|gotta|got to|will) (go|leave|run|be off|head out|hang up)"
    "|(ive|i have) got to (go|leave|run|be off)|i (am|will be) (going|leaving|off)|im (off|leaving|going"
    "|out|out of here|heading out)|i will talk to you later|ill (talk to|see) you [later|soon|tomorrow]"
    "|time to go|gotta go|got to go|i must be going|have a good 1|have a good one|thats it for (today|now|me)|(lets|we can) (stop|end|finish) [it] here"
    "|(end|stop|finish|quit|close|leave|exit) (the|this|our) (conversation|talk|chat|session|program"
    "|app|call)|hang up|quit|exit|were done [here]|we are done [here]|im done|i am done)",
    "night": "(good night to you|(have|and) a good night|(im|i am) (going|off) to bed|good night|goodnight|night night|nighty night|sleep well|sweet dreams|sleep tight)",
    "done": "(thats all|that is all|that will be all|thatll be all|that was all|thats everything"
    "|that is everything|nothing else|no more questions|i have no more questions|im all set"
    "|i am all set|were all set|that would be all|all done|thats it|that is it)"
    " [for (now|today|me|the moment|tonight)|i (need|needed|wanted)]",
    "name": "(assistant|computer|my friend|dear|everyone|everybody|then|now|there|all|voiceloop)",
    "cancel": "(cancel|stop|delete|remove|end|kill|clear|turn off|switch off|shut off|disable|abort"
    "|dismiss|reset|drop|get rid of|unset|quit|silence|take off|erase)",
    "when": "([at|for] {time} [on|for] [{day} [{q:half}]]|[on|for] {day} [at|for|in the] {time})",
    "city": "{city} [{region:city}]",
    "amount": "({amount}|[a|an|1] {v:unit})",
}
RULES = {
    "time": (
        "<ask> what time (is it|it is|is it now|do we have|do you have|have you got)",
        "<ask> (what|whats) time is it",
        "<ask> <what is> the [current|exact|correct|local|right|actual] time [of day|of the day|here|like]",
        "<ask> (what is|whats) the [current|exact|local] time (is|it is|is it)",
        "<ask> what the [current|exact|correct|local] time is [here]",
        "(tell me|give me|i need|say|show me|check) the [current|exact|correct|local] time",
        "[the] current time",
        "time check",
        "time please",
        "telling me the time",
        "(can|could|may) i (get|have|know) the time",
        "<ask> <what is> the (hour|time over there|time there)",
        "(do you have|have you got|you got|got|do you know) the [right|correct|exact] time",
        "how late is it [already]",
        "what hour is it",
    ),
    "time_in": (
        "<ask> what time (is it|it is) [right now|now|currently|at the moment|there] [over|there] in <city> [time]",
        "<ask> <what is> the [current|local|exact] time [now|right now|currently] [over] in <city>",
        "<ask> what the [current|local] time (is in {city}|in {city} is)",
        "(tell me|give me|check) the [current|local] time in {city}",
        "[the] [current|local] time in {city}",
        "<ask> what time (do they|do people) have in {city}",
        "how late is it in {city}",
        "in <city> what time is it",
        "<ask> [<what is>] {city} time",
    ),
    "time_later": (
        "<ask> what time (will it be|is it|it will be|will we have|would it be|it is"
        "|is it going to be|it is going to be) ((in|after) {duration}|{duration} (from now|later))",
        "<ask> <what is> the time going to be (in {duration}|{duration} from now)",
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
        "<ask> what (will|would) the (date|day) be [on] {day}",
        "is (it|today) {w:weekday} [today]",
        "is {day} [a] {w:weekday}",
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
        "<ask> <what is> the [next] day after {weekday} [called]",
    ),
    "day_before": (
        "<ask> (what|which) (day|weekday) [of the week] (comes|is|precedes|came|goes|it is|was)"
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
        "<ask> in how many {p:period} (is|will it be) {day}",
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
        "(count down|counting down|start counting down|time) [from|for|me for] {duration}",
        "{duration} on the clock",
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
        "(ring|alarm) [me] <when>",
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
        " it have|are|has)+ (left|remaining|to go|still left)+ [[on|in|for|of] [<mine>] [{name:label}]"
        " <timer>]",
        "<ask> how (much longer|long) (is|will) [<mine>] [{name:label}] <timer> (going to take|take|run|be)",
        "<ask> how (much|long|much more|much longer|many minutes|many seconds) [time] [is|are|do i have"
        "|is there|does] [left|remaining|still] (on|in|for|of|does)+ <mine> [{name:label}] <timer>"
        " [have|still have|left|take|run|going to take|have left]",
        "<ask> how (long|much longer|much time|many minutes) [is it|left] (until|till|before|to) [<mine>]"
        " [{name:label}] <timer> (rings|goes off|is over|is done|ends|finishes|runs out|goes|is up|is)",
        "<ask> when (does|will|is|do|are) [<mine>] [{name:label}] <timer> (ring|go off|end|finish|be over"
        "|be done|run out|over|done|up|going to ring|ringing|due|be up|expire|set for|set)",
        "<ask> when is [<mine>] [{name:label}] <timer>",
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
    "timer_cancel_all": (
        "<cancel> (all|all of|every|both|all the|each) [of] [<mine>] <timer>",
        "<cancel> [<mine>] (timers|alarms|reminders)",
        "<cancel> (all of them|them all|everything)",
    ),
    "timer_cancel": (
        "<cancel> [<mine>] [{name:label}] <timer> [off|please]",
        "<cancel> [<mine>] {duration} (timer|countdown)",
        "<cancel> [<mine>] (timer|reminder|countdown) (for|of|about) [the|my] ({duration}|{name:label})",
        "<cancel> <mine> alarm (for|at) {time}",
        "(turn|switch|shut) [<mine>] [{name:label}] <timer> off",
        "i (dont|do not) need [<mine>] [{name:label}] <timer> [anymore|any more|any longer]",
        "(forget|no more|never mind) [about] [<mine>] [{name:label}] <timer>",
    ),
    "sum": (
        "<ask> [<calc>] {sum} [equal|equals|make|makes|is|come to|give|be|equal to|total]",
        "[if (i|you|we)|when (i|you)] {sum} (what|how much) (do (i|you|we) get|is (it|that)|does (it|that) make)",
        "<calc> {a:number} and {b:number} [make|equal|together|give]",
    ),
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
    "remember": (
        "(remember|keep in mind|dont forget|do not forget|never forget|memorize|make a note"
        "|take a note|remember for me|try to remember) that {fact:words}",
        "(remember|remember this|keep in mind|dont forget|do not forget|memorize) {fact:own}",
        "i want you to (remember|keep in mind) (that {fact:words}|{fact:own})",
    ),
    "facts": (
        "<ask> what (do|did|can|have) you [still|ever] (remember|remembered|keep|kept) about me",
        "<ask> what [things] (did|have) i (ask|asked|tell|told) you to remember [about me]",
        "<ask> what you (remember|know) about me",
        "<ask> what do you know about me",
        "(list|read|tell me) (everything|all|all that|what) you remember [about me]",
        "what (have|did) you (remember|remembered|memorize|memorized)",
    ),
    "forget_last": (
        "(forget|forget about|dont remember|do not remember) (that|this|what i [just] (said|told you))"
        " [again]",
    ),
    "forget_all": (
        "(forget|delete|erase) (everything|all|all that|whatever|anything) (you (remember|know|have)"
        " [about me]|i [ever] (told|asked) you [to remember]|about me)",
    ),
    "forget_fact": (
        "(forget|delete|you can forget|dont remember) [the fact] that {fact:words}",
        "(forget|delete) {fact:own}",
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
        "(tell me|run that by me|go over that) again",
        "(sorry|excuse me|pardon) (what|what was that|come again)",
        "^ <again>",
        "come again",
        "what did you [just] say [again|just now]",
        "what was that [again]",
        "pardon [me]",
        "i beg your pardon",
        "[sorry] i (didnt|did not|couldnt|could not) [quite] (hear|catch|get|understand"
        "|make out|follow) [that|you|it|what you said|a word|this]",
        "what (have you|you) [just] said [again]",
        "(i missed that|i missed it|you what)",
    ),
    "stop": (
        "[<praise>] [i said] (<stopping> )+ [now|already|for (now|a (moment|minute|second|while|bit))]"
        " [<praise>] [<thanking>] [<name>]",
    ),
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
        "keep (your voice|it) down",
        "(speak|talk) [<bit>] [more] quietly",
    ),
    "slower": (
        "[<speak>] [<bit>] (slower|more slowly|more slow|less fast|less quickly|slowly)",
        "(slow|slow it|slow yourself) down [<bit>]",
        "(not so|not that) (fast|quick|quickly)",
        "(dont|do not) (speak|talk|read|go) (so|that|too) (fast|quickly)",
        "(youre|you are|thats|that is|that was|its|it is) [(speaking|talking|going|reading)] [<bit>]"
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
        " (too|so|way too)+ (slow|slowly)",
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
