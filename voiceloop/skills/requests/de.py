"""Templates of German requests. `skills.template` explains how they are written."""

from __future__ import annotations

LEADS = (
    "hey|bitte|hallo|hi|okay|ok|so|also|äh|ähm|oh|und|gut|jetzt|dann|ja|nein|nee|entschuldigung|sorry|hör zu|computer"
    "|assistent|voiceloop|hm|nur|aber|danke|super|prima|alles klar|na|du|sag mal|sag|servus|guten tag|moin"
    "|(kannst|könntest|würdest|willst|magst) du [mir|für mich|uns]|(können|könnten|würden) sie [mir]"
    "|ich (möchte|will|hätte gern|hätte gerne|würde gern|würde gerne|brauche)|ich (möchte|will) dass du"
    "|(darf|kann) ich [dich] [was|etwas] fragen|sei so (gut|nett) und|eine frage|kurze frage|lass uns"
)
TAILS = (
    "bitte|jetzt|danke|dankeschön|vielen dank|für mich|dann|wenn (es geht|du kannst|möglich)|okay|ok|sofort"
    "|computer|assistent|genau|im moment|momentan|denn|eigentlich|gerade|mal|schnell|ja|oder|wieder|im augenblick"
    "|aktuell|nochmal bitte|übrigens|mein freund|gell|kurz"
)
NAMED = {
    "ask": "[(sag|sage|sagst du|nenn|nenne|verrat|verrate|zeig|zeige|erklär) [mir|uns]|(mir|uns) (sagen|verraten)"
    "|weißt du|weisst du|(weißt|weisst) du [zufällig]|ich (möchte|will|würde gern|würde gerne|wüsste gern"
    "|wüsste gerne|wollte) [gern|gerne] wissen|wissen|hast du eine ahnung|schau [nach]|prüf|prüfe|finde heraus"
    "|(erinner|erinnere) mich [daran]|mich erinnern|mich daran erinnern]",
    "howmany": "(wie (viele|viel)|wieviel|wieviele)",
    "calc": "(was ist|was sind|was macht|was machen|was ergibt|was ergeben|was gibt|was wäre|was wären|wie viel ist"
    "|wie viel sind|wie viel macht|wie viel ergibt|wieviel ist|wieviel sind|wieviel macht|wieviel ergibt"
    "|wie viel gibt|wieviel gibt|rechne|rechne aus|berechne|berechnen|ausrechnen|kalkuliere|löse"
    "|rechne mir [aus]|(was|wie) (ist|lautet) (das|die) (ergebnis|lösung|resultat) (von|aus|für)"
    "|was bekomme ich [für|bei]|was kommt raus bei|was kommt bei|wie hoch ist|wie groß ist)",
    "set": "(stell|stelle|setz|setze|start|starte|mach|mache|gib mir|gib|ich brauche|ich möchte|ich will|erstelle"
    "|erstell|richte|aktiviere|stell mir|stelle mir|setze mir|mach mir|beginne|öffne|leg|lege|brauche|einen"
    "|nimm|lass)",
    "a": "(ein|eine|einen|einem|den|der|das|die|noch|weiteren|weitere|zweiten|neuen|neue|mir|mal|bitte|anderen|meinen)+",
    "setting": "(stellen|setzen|starten|machen|einstellen|einrichten|erstellen|ein|an|laufen|aktivieren|anmachen"
    "|aufstellen|beginnen|geben|haben|laufen lassen)",
    "for": "(auf|für|von|über|mit|in|zu)",
    "again": "(noch (einmal|mal)|nochmal|nochmals|erneut|wieder|noch einmal|ein weiteres mal|einmal noch)",
    "bit": "(ein bisschen|ein wenig|etwas|bisschen|viel|noch|deutlich|noch etwas|ein kleines bisschen|noch ein bisschen|n bisschen)",
    "mine": "(der|die|das|den|dem|mein|meine|meinen|meinem|dieser|diesen|diese|unser|unseren)",
    "timer": "{what:thing}",
    "speak": "(sprich|sprech|spreche|rede|red|sprechen|reden|sag es|sag das|sei|lies|vorlesen|mach|mach es|machs|klinge|sprechen sie)",
    "stopping": "(stop|stopp|stoppe|stoppen|halt|halt an|anhalten|hör auf|hör auf (damit|zu reden|zu sprechen|zu lesen)|aufhören"
    "|sei (still|ruhig|leise)|ruhe|still|stille|schweig|schweige|klappe|halt (den mund|die klappe|deinen mund|den rand)"
    "|genug|das (reicht|genügt|ist genug)|es reicht|reicht|reichts|jetzt reichts|du kannst aufhören|ist gut|ist gut jetzt|jetzt reicht es|genug (davon|damit|jetzt)|schluss|schluss (damit|jetzt)"
    "|vergiss (es|das)|egal|schon gut|lass (es|gut sein|das|mal)|ist egal|nicht [so] wichtig|unwichtig|abbrechen|abbruch|brich ab"
    "|warte|warte (kurz|einen moment|eine sekunde|mal)|moment|einen moment|einen augenblick|eine sekunde|pause|psst|pst|pscht"
    "|nicht mehr (reden|sprechen)|stopp (mal|jetzt)|stop (mal|jetzt)|kein wort mehr|(still|ruhig|leise) sein|aufhören [zu (reden|sprechen)]|den mund halten)",
    "thanking": "(danke|dankeschön|danke schön|danke sehr|vielen dank|vielen lieben dank|besten dank|herzlichen dank|tausend dank"
    "|danke dir|ich danke dir|merci|danke vielmals|lieben dank)"
    " [für (die (hilfe|info|information|auskunft|antwort|mühe|unterstützung|geduld)|deine (hilfe|zeit|antwort|mühe|geduld)|alles|das|den (tipp|rat|witz))|dafür]",
    "praise": "(super|prima|toll|klasse|perfekt|sehr gut|gut|okay|ok|alles klar|wunderbar|ausgezeichnet|genial|cool|schön|sehr schön"
    "|gut gemacht|(das ist|das war|du bist) [sehr|echt|wirklich|ja|so] (nett|lieb|toll|super|gut|hilfreich|prima|großartig|klasse|interessant)"
    "|großartig|spitze|fein|ach|oh|ja|na)",
    "bye": "(tschüss|tschüssi|tschüs|tschau|ciao|auf wiedersehen|auf wiederhören|wiedersehen|bis (bald|dann|später|morgen|nachher|demnächst|gleich|zum nächsten mal|nächste woche|heute abend)"
    "|machs gut|mach es gut|ade|servus|leb wohl|pfiat di|bye|bye bye|wir (sehen|hören|sprechen) uns [bald|später|morgen|wieder|dann|noch]"
    "|schönen (tag|abend|feierabend) [noch|dir noch|dir]|schönes wochenende|einen schönen (tag|abend) [noch]"
    "|ich (muss|sollte|will|werde) [jetzt|nun|leider|dann|mal] (los|gehen|weg|auflegen|schluss machen|aufhören|weiter)"
    "|ich (gehe|bin) (jetzt|dann|nun|mal)+ [weg]|ich bin (weg|raus)|ich gehe jetzt|(beende|beenden|schließ|schließe|verlasse) (das|dieses|unser|die) (gespräch|unterhaltung|programm|sitzung|app)"
    "|(das|dieses|unser|die) (gespräch|unterhaltung|programm|sitzung) beenden|wir sind fertig|ich bin fertig|auflegen)",
    "night": "(ich geh (ins bett|schlafen)|ich gehe [jetzt] (ins bett|schlafen)|gute nacht|gut nacht|schlaf (gut|schön)|schlafen sie gut|träum [was] (schönes|süß)|angenehme nacht|nacht)",
    "done": "(das (war|wars|wäre|ist) [dann|auch] (alles|es|schon alles)|das wars|das war es|mehr brauche ich nicht|nichts weiter|sonst nichts|nichts mehr"
    "|keine weiteren fragen|ich habe keine [weiteren] (fragen|frage mehr|fragen mehr)|das reicht mir|mehr nicht|alles erledigt)"
    " [für (heute|jetzt|den moment)]",
    "name": "(computer|assistent|mein freund|alle|zusammen|du|dann|voiceloop)",
    "cancel": "(lösch|lösche|stopp|stoppe|stop|beende|brich|storniere|entferne|schalt|schalte|mach|abbrechen|annulliere|streich|streiche|deaktiviere|verwirf|halt|halte|stell|stelle|vergiss)",
    "canceling": "(löschen|stoppen|beenden|abbrechen|stornieren|entfernen|ausschalten|ausmachen|abstellen|deaktivieren|anhalten|ab|aus|abschalten|an)",
    "when": "([um|auf|für|gegen] {time} [am|für] [{day}]|[für|am] {day} [früh] (um|auf|für|gegen)+ {time}|{day} {time})",
    "amount": "({amount}|[ein|eine|einem|einer|einen] {v:unit})",
    "into": "(in|zu|als|nach)",
}
RULES = {
    "time": (
        "<ask> wie (spät|viel uhr) (ist es|haben wir es|haben wir|es ist|wir haben|haben wir denn|is es|isses)",
        "<ask> wieviel uhr (ist es|haben wir|es ist)",
        "<ask> (welche|was für eine) (uhrzeit|zeit) (haben wir|ist es|ist)",
        "<ask> (was|wie) (ist|lautet) die [aktuelle|genaue|momentane] (uhrzeit|zeit)",
        "(sag|sage|nenn|nenne) mir die [aktuelle|genaue] (uhrzeit|zeit)",
        "[die] [aktuelle|genaue] uhrzeit [sagen|wissen|nennen|ansagen]",
        "(hast du|weißt du|kennst du) [die|ne|eine] [genaue] (uhrzeit|uhr|zeit)",
        "was sagt die uhr",
        "<ask> wie spät",
        "<ask> wie spät es [jetzt] ist",
    ),
    "time_in": (
        "<ask> wie (spät|viel uhr) (ist es|es ist|haben wir es) [jetzt|gerade] in {city}",
        "<ask> wieviel uhr ist es [jetzt|gerade] in {city}",
        "<ask> wie (spät|viel uhr) es [jetzt|gerade] in {city} ist",
        "<ask> (welche|was für eine) (uhrzeit|zeit) (haben wir|ist es|ist|haben sie|gilt) [jetzt] in {city}",
        "<ask> (was|wie) (ist|lautet) die [aktuelle] (uhrzeit|zeit|ortszeit) in {city}",
        "<ask> [die] [aktuelle] (uhrzeit|zeit|ortszeit) in {city}",
        "wie spät haben sie es in {city}",
        "<ask> wie spät ist es dort in {city}",
    ),
    "time_later": (
        "<ask> wie (spät|viel uhr) (ist|wird|haben wir) [es] in {duration} [sein]",
        "<ask> wieviel uhr ist es in {duration}",
        "<ask> wie (spät|viel uhr) es in {duration} (ist|sein wird)",
        "<ask> (welche uhrzeit|welche zeit) (ist|haben wir|wird) [es] in {duration} [sein]",
        "in {duration} (ist|wird) es wie spät",
        "wie spät in {duration}",
    ),
    "time_ago": (
        "<ask> wie (spät|viel uhr) (war|ist) es vor {duration}",
        "<ask> wieviel uhr war es vor {duration}",
        "<ask> wie spät es vor {duration} war",
        "welche uhrzeit war vor {duration}",
    ),
    "day": (
        "<ask> (welcher|welchen|was für ein|was für einen) (tag|wochentag) (ist|war|wird|haben wir|hatten wir|wäre|haben wir am|ist am) [es] [{day}] [sein]",
        "<ask> (welcher|welchen|was für ein|was für einen) (tag|wochentag) [es] {day} (ist|war|sein wird|haben|hatten)",
        "<ask> (welcher|was für ein) (tag|wochentag) ist (der|das|am|an)+ {day}",
        "<ask> was (ist|war|wird|haben wir|hatten wir) {day} für (ein|einen) (tag|wochentag|datum)",
        "(ist|haben wir) (heute|{day}) {w:weekday}",
        "<ask> (welches|was für ein) datum (ist|war|haben wir|hatten wir|wird|ist es|hat|haben) [{day}] [sein]",
        "<ask> (welches|was für ein) datum [wir] {day} (ist|war|haben|hat)",
        "<ask> (was|wie) (ist|lautet) das [heutige|aktuelle|genaue] datum [von|für] [{day}]",
        "(sag|nenn|nenne|sage) mir das [heutige|aktuelle] datum [von|für] [{day}]",
        "[das] (heutige|aktuelle) datum",
        "(der|den) wievielte [ist|haben wir|war] {day}",
        "<ask> (der|den) wievielte (ist|war|haben wir) [{day}]",
        "<ask> den wievielten (haben wir|hatten wir) [{day}]",
        "<ask> den wievielten wir {day} haben",
        "<ask> (wann|an welchem tag|auf welchen tag) (ist|war|fällt|sind) [der|das|dieses jahr] {day} [dieses jahr|statt]",
        "(wann|an welchem tag|auf welchen wochentag) {day} (ist|fällt)",
        "(auf|an) (welchen|welchem) (tag|wochentag) (fällt|ist) {day} [dieses jahr]",
        "welcher tag [ist]",
    ),
    "day_after": (
        "<ask> (welcher|was für ein) (tag|wochentag) (kommt|ist|folgt) [direkt] (nach|auf) {weekday}",
        "<ask> was (kommt|folgt) [direkt] (nach|auf) {weekday}",
        "<ask> (welcher|was) [der] [tag] (ist|kommt|ist der tag) nach [dem] {weekday}",
        "<ask> (welcher|was) tag (kommt|folgt) (nach|auf) (dem|den) {weekday}",
    ),
    "day_before": (
        "<ask> (welcher|was für ein) (tag|wochentag) (kommt|ist|war|liegt) [direkt] vor {weekday}",
        "<ask> was (kommt|ist) [direkt] vor {weekday}",
        "<ask> (welcher|was) [tag] (ist|kommt|war) vor dem {weekday}",
    ),
    "month": (
        "<ask> (welcher|welchen|was für ein|was für einen) monat (haben wir|ist|ist es|wir haben) [heute|jetzt]",
        "<ask> in welchem monat sind wir",
    ),
    "year": (
        "<ask> (welches|was für ein) jahr (haben wir|ist|ist es|wir haben|schreiben wir) [heute|jetzt]",
        "<ask> in welchem jahr (sind|leben) wir",
    ),
    "week": (
        "<ask> (welche|die wievielte|in welcher) (kalenderwoche|woche) (haben wir|ist|ist es|sind wir) [heute|jetzt]",
        "<ask> (was ist|wie lautet) die [aktuelle] kalenderwoche",
    ),
    "days_until": (
        "<ask> <howmany> {p:period} (sind es|sind|dauert es|bleiben|haben wir|habe ich|muss ich warten|verbleiben|sinds) [noch|uns|mir] (bis|bis zum|bis zu)+ [dem|der|den|zum] {day}",
        "<ask> <howmany> {p:period} [noch] (bis|bis zum|bis zu)+ [dem|der|den] {day} [noch|sind es|sinds]",
        "<ask> <howmany> {p:period} [es] [noch] (bis|bis zum) {day} (sind|dauert|hin sind)",
        "<ask> <howmany> {p:period} (sind es|ist es) bis [dahin] {day}",
        "<ask> in wie vielen {p:period} ist {day}",
        "<ask> wie lange (ist es|dauert es|muss ich|müssen wir|haben wir|dauert) [noch] [warten] (bis|bis zum|bis zu)+ [dem|der] {day} [warten]",
        "<ask> wie lange [noch] (bis|bis zum)+ {day} [noch]",
        "<ask> wie lange es [noch] (bis|bis zum) {day} (ist|dauert)",
        "[noch] <howmany> {p:period} bis {day}",
        "<ask> wie oft (muss ich|müssen wir|wird) [noch] (schlafen|geschlafen) bis {day}",
        "<ask> wie oft (muss ich|müssen wir) [noch] bis {day} schlafen",
    ),
    "days_since": (
        "<ask> <howmany> {p:period} (sind|ist) [es] (seit|her seit|vergangen seit) [dem|der|letztem|letzter|letzten] {day} [her|vergangen]",
        "<ask> <howmany> {p:period} ist {day} her",
        "<ask> wie lange ist [es] [seit] {day} her",
        "<ask> vor wie vielen {p:period} war {day}",
    ),
    "time_until": (
        "<ask> wie (lange|viel zeit|viele stunden|viele minuten) (ist es|dauert es|habe ich|haben wir|sind es|bleibt|bleibt mir) [noch] bis {time}",
        "<ask> wie (lange|viel zeit|viele stunden|viele minuten) [noch] bis {time} [noch]",
    ),
    "timer": (
        "[<set>] [<a>] (timer|timers|time|kurzzeitwecker|zeitgeber|eieruhr|countdown|stoppuhr) [<for>] {duration} [<setting>]",
        "[<set>] [<a>] (timer|countdown|kurzzeitwecker|eieruhr) [<for>] {duration} (namens|für|mit dem namen|genannt) [die|den|das|meine|meinen] {name:words}",
        "[<set>] [<a>] {duration} (timer|countdown|kurzzeitwecker) [<setting>]",
        "[<set>] [<a>] {name:label} (timer|countdown) [<for>] {duration} [<setting>]",
        "[<set>] [<a>] {duration} {name:label} timer [<setting>]",
        "[<set>] [<a>] timer für [die|den|das|meine|meinen] {name:label} [<for>] {duration} [<setting>]",
        "[<set>] [<a>] timer (namens|mit dem namen) {name:label} [<for>] {duration} [<setting>]",
        "(stopp|zähl|zähle) {duration} [runter|herunter|rückwärts|ab]",
        "(zähl|zähle) [von] {duration} (runter|herunter|rückwärts)",
        "(weck|wecke|erinner|erinnere|ruf|rufe|alarmiere|benachrichtige|klingel|klingle|melde) (mich|uns|dich)+ in {duration} [an]",
        "(klingel|klingle|klingeln|läute|pieps) in {duration}",
        "in {duration} (wecken|klingeln|erinnern|erinner mich|weck mich|wecke mich|bescheid sagen)",
        "(mich|uns) in {duration} (wecken|erinnern)",
        "(sag|gib) mir in {duration} bescheid",
        "[<set>] [<a>] (wecker|alarm) in {duration} [<setting>]",
        "{duration} (auf die uhr|auf den timer)",
    ),
    "timer_asks": (
        "<set> [<a>] (timer|countdown|kurzzeitwecker) [<setting>]",
        "<a> (timer|countdown|kurzzeitwecker) <setting>",
        "(timer|countdown) (stellen|starten|an)",
        "einen timer",
    ),
    "duration": ("[für|auf|in|sagen wir|vielleicht|ungefähr|etwa] {duration}",),
    "alarm": (
        "[<set>] [<a>] alarm [<for>] <when> [<setting>]",
        "(klingel|klingle|klingeln|läute) <when>",
    ),
    "wake": (
        "[<set>] [<a>] wecker [<for>] <when> [<setting>]",
        "(weck|wecke) (mich|uns) <when> [auf]",
        "(mich|uns) <when> (wecken|aufwecken)",
        "ich (muss|will|möchte|sollte) <when> (aufstehen|aufwachen|wach sein|raus|geweckt werden)",
    ),
    "reminder": (
        "(erinner|erinnere) mich in {duration} (an|daran|dass|ans)+ {name:words}",
        "(mich|uns) in {duration} (an|daran) {name:words} (erinnern)",
        "(erinner|erinnere) mich (an|daran) {name:words} in {duration}",
    ),
    "reminder_at": (
        "(erinner|erinnere) mich <when> (an|daran|dass|ans)+ {name:words}",
        "(mich|uns) <when> (an|daran) {name:words} erinnern",
    ),
    "timer_left": (
        "<ask> wie (viel zeit|lange|viele minuten|viel|viele sekunden) (ist|hat|läuft|habe ich|haben wir|bleibt|bleiben|dauert|sind|verbleibt|braucht) [mir|uns] [noch] [[<mine>] [{name:label}] <timer>] [noch] (übrig|auf dem timer|beim timer|noch|noch übrig|auf der uhr|am timer|zeit)",
        "<ask> wie (viel zeit|lange|viele minuten|viel) (ist|hat|läuft|bleibt|bleiben|dauert|verbleibt|braucht|geht) [noch] [<mine>] [{name:label}] <timer> [noch] [übrig|zeit]",
        "<ask> wie (viel zeit|lange|viele minuten|viel) (ist|bleibt|bleiben|habe ich|haben wir|verbleibt|sind)+ [noch] [übrig] (auf|bei|beim|bis|am|für|von) [<mine>] [{name:label}] <timer> [noch] [übrig|klingelt|abläuft]",
        "<ask> wie lange [noch|dauert es noch] bis [<mine>] [{name:label}] <timer> (klingelt|abläuft|fertig ist|läutet|abgelaufen ist|vorbei ist)",
        "<ask> wann (klingelt|läuft|ist|endet|läutet|geht) [<mine>] [{name:label}] <timer> [ab|fertig|abgelaufen|vorbei|zu ende|los]",
        "<ask> (welche|wie viele|was für) <timer> (laufen|habe ich|sind gestellt|gibt es|sind aktiv|sind|hab ich) [gerade|noch|gestellt]",
        "(läuft|gibt es|ist) [noch|ein|eine|irgendein|mein|der]+ <timer> [gestellt|aktiv|noch]",
        "habe ich [noch] [einen|ein|irgendwelche] <timer> [gestellt|laufen|am laufen]",
        "(zeig|zeige|liste|nenn) [mir] [alle] [<mine>] <timer> [auf]",
        "(was macht|wie steht es um|wie sieht es aus mit) [<mine>] [{name:label}] <timer>",
        "wie (steht|ist) [<mine>] [{name:label}] <timer>",
    ),
    "timer_cancel_all": (
        "<cancel> (alle|sämtliche|beide|all) [meine|die|unsere] <timer> [<canceling>]",
        "(alle|sämtliche|beide) [meine|die] <timer> <canceling>",
        "<cancel> (alles|alle) [<canceling>]",
    ),
    "timer_cancel": (
        "<cancel> [<mine>] [{name:label}] <timer> [<canceling>]",
        "<cancel> [<mine>] {duration} timer [<canceling>]",
        "[<mine>] [{name:label}] <timer> <canceling>",
        "[<mine>] {duration} timer <canceling>",
        "<cancel> [<mine>] (timer|erinnerung) (für|über|von|an) [die|den|das] ({duration}|{name:label}) [<canceling>]",
        "<cancel> [<mine>] (wecker|alarm) (um|für|auf) {time} [<canceling>]",
        "ich brauche [<mine>] [{name:label}] <timer> nicht mehr",
    ),
    "sum": (
        "<calc> {a:number} und {b:number} [zusammen]",
        "<ask> [<calc>] {sum} [ist|macht|ergibt|aus|zusammen|gleich|ausrechnen|sind|ergeben|rechnen]",
    ),
    "convert": (
        "<ask> <howmany> {u:unit} (sind|hat|haben|ergeben|macht|machen|ist|stecken in|passen in|entsprechen|sind in|ergibt|gehen auf|gibt es in|enthält|hat ein|sind es in)+ [in|auf] <amount> [haben|hat]",
        "<ask> <howmany> {u:unit} [in] <amount> (sind|hat|haben|ist|ergeben|entsprechen)",
        "<ask> [<calc>] <amount> [umgerechnet] <into> {u:unit} [umgerechnet|um]",
        "<ask> wie (viel|viele|lang|schwer|weit|heiß|kalt|warm|groß|hoch|schnell) (ist|sind) <amount> in {u:unit}",
        "(rechne|wandle|wandel|konvertiere|konvertier|übersetze|verwandle) <amount> <into> {u:unit} [um]",
        "<amount> <into> {u:unit} (umrechnen|umwandeln|konvertieren|ausdrücken)",
        "<ask> was (ist|sind) <amount> in {u:unit}",
    ),
    "remember": (
        "(merk|merke|merken|notier|notiere|behalte) [dir|es dir] [bitte] dass {fact:words}",
        "(merk|merke) dir [bitte] {fact:own}",
        "(vergiss|vergesse) [bitte] nicht dass {fact:words}",
        "(denk|denke) daran dass {fact:words}",
        "dir (merken|merkst) dass {fact:words}",
    ),
    "facts": (
        "<ask> (was|woran) (weißt|weisst|erinnerst) du [noch|dich|dich noch|alles] (über|von|an) mich",
        "<ask> was (hast|hattest) du dir [über mich|von mir|alles]+ gemerkt",
        "<ask> was hast du dir gemerkt",
        "<ask> was solltest du dir merken",
        "<ask> was (habe|hab) ich dir gesagt dass du dir merken sollst",
        "<ask> was du [noch] über mich (weißt|weisst)",
    ),
    "forget_last": (
        "vergiss (das|was ich [gerade|eben] gesagt habe) [wieder]",
        "(merk|merke) dir das nicht",
    ),
    "forget_all": (
        "(vergiss|lösch|lösche) alles (was du [dir] [über mich|von mir] [gemerkt hast|weißt|weisst]|über mich"
        "|was ich dir gesagt habe)",
    ),
    "forget_fact": (
        "(vergiss|lösch|lösche) [wieder] dass {fact:words}",
        "vergiss {fact:own}",
    ),
    "recall": (
        "<ask> was (habe|hab|hatte|wollte) ich [dich|dir] [eben|gerade|vorhin|zuletzt|vorher|grade|davor]+ (gefragt|gesagt|erzählt|wissen|fragen)",
        "<ask> was (habe|hab) ich [dich|dir] (gefragt|gesagt|erzählt)",
        "<ask> was ich [dich|dir] [eben|gerade|vorhin|zuletzt|vorher|grade|davor] (gefragt|gesagt|erzählt|wissen wollte|fragen wollte) [habe|hab]",
        "<ask> (was|wie) (war|lautete) meine [letzte|vorige|vorherige] (frage|bitte|anfrage)",
        "(weißt|weisst) du noch was ich [dich] [eben|gerade|vorhin|zuletzt] (gefragt|gesagt) habe",
        "<ask> was meine [letzte|vorige] frage war",
        "(wiederhol|wiederhole|wiederholen|lies) [mir] meine [letzte|vorige] (frage|anfrage) [vor|nochmal|noch einmal] [wiederholen]",
        "meine [letzte|vorige] frage (wiederholen|vorlesen|noch einmal)",
        "(wiederhol|wiederhole) was ich [dich|dir] [eben|gerade|vorhin|zuletzt] (gefragt|gesagt) habe",
    ),
    "recall_first": (
        "<ask> was (habe|hab) ich [dich|dir] (zuerst|als erstes|am anfang|zu beginn) (gefragt|gesagt)",
        "<ask> (was|wie) (war|lautete) meine (erste|allererste) frage",
        "<ask> was meine erste frage war",
    ),
    "repeat": (
        "(sag|sage|sagen|erzähl) [mir] (das|es|dies) [bitte] <again> [sagen]",
        "(das|es) <again> (sagen|wiederholen)",
        "(wiederhol|wiederhole|wiederholen) [das|es|dich|deine letzte antwort|deine antwort|den letzten satz|was du [gerade|eben] gesagt hast] [<again>]",
        "(das|es|deine [letzte] antwort|den letzten satz) [bitte|<again>] wiederholen",
        "^ <again>",
        "(sag|sage) <again>",
        "was hast du [gerade|eben|da|jetzt] gesagt",
        "was (hast du|war das) [gesagt] <again>",
        "(wie|was)",
        "was war das [<again>]",
        "ich (habe|hab) (das|dich|es) [gerade|leider|akustisch] nicht (verstanden|gehört|mitbekommen|mitgekriegt)",
        "(das|dich) (habe|hab) ich [gerade|leider|akustisch] nicht (verstanden|gehört|mitbekommen)",
        "wie war das [<again>]",
        "<again> (langsam|von vorn|von vorne|sagen)",
        "(wiederholung|noch mal das ganze)",
        "(dich|sie das|das|sich) wiederholen [sie das]",
        "wiederholen sie [das|sich]",
    ),
    "stop": ("[<praise>] (<stopping> )+ [<praise>] [<thanking>] [<name>]",),
    "undo": (
        "(brich|storniere|lösche|lösch|streich|streiche) (das|es) [ab|wieder]",
        "(mach|nimm) (das|es) (rückgängig|zurück|wieder rückgängig)",
        "(das|es) (abbrechen|rückgängig machen|stornieren|löschen)",
        "doch nicht",
    ),
    "thanks": (
        "(<praise> )+ (<thanking> )+ [<praise>] [<name>]",
        "(<thanking> )+ [<praise>] [<name>]",
    ),
    "done": (
        "[<praise>] [<thanking>] [nein] <done> [<praise>] (<thanking> )+ [<name>]",
        "[<praise>] (<thanking> )+ [nein] <done> [<name>]",
    ),
    "goodbye": (
        "[<praise>] [<praise>] [<thanking>] [<praise>] [<done>] [<thanking>] [<name>] (<bye> )+ [<name>] [<thanking>] [<bye>]",
    ),
    "night": (
        "[<praise>] [<thanking>] [<done>] [<bye>] (<night> )+ [<name>] [<bye>] [<thanking>] [und] [<night>]",
    ),
    "louder": (
        "[<speak>] [<bit>] lauter [<bit>] [sprechen|reden|machen|werden]",
        "(mach|mache|dreh|drehe|stell|stelle) [es|die lautstärke|dich|den ton|die stimme] [<bit>] (lauter|hoch|auf|höher)",
        "(erhöh|erhöhe|steigere) die lautstärke [<bit>]",
        "[die] lautstärke [<bit>] (hoch|höher|rauf|erhöhen|lauter)",
        "ich (kann|höre) dich (kaum|nicht|schlecht|nicht gut|fast nicht)+ [hören|gut]",
        "(du bist|das ist|es ist) [<bit>] (zu leise|zu still)",
        "(zu leise|nicht laut genug)",
        "sprich mit lauterer stimme",
    ),
    "softer": (
        "[<speak>] [<bit>] (leiser|ruhiger) [<bit>] [sprechen|reden|machen|werden]",
        "(mach|mache|dreh|drehe|stell|stelle) [es|die lautstärke|dich|den ton|die stimme] [<bit>] (leiser|runter|herunter|niedriger)",
        "(senk|senke|verringere|reduziere) die lautstärke [<bit>]",
        "[die] lautstärke [<bit>] (runter|niedriger|senken|leiser|reduzieren)",
        "(nicht so|weniger|nicht ganz so) laut",
        "(schrei|brüll|schreie) nicht so",
        "(du bist|das ist|es ist) [<bit>] zu laut",
        "zu laut",
    ),
    "slower": (
        "[<speak>] [<bit>] langsamer [<bit>] [sprechen|reden|machen|werden]",
        "(nicht so|weniger|nicht ganz so) schnell",
        "(sprich|rede|red) nicht so schnell",
        "(sprich|rede|lies) [<bit>] langsam",
        "(du (sprichst|redest|bist)|das ist|das war|es ist) [<bit>] zu schnell",
        "zu schnell",
        "(verringere|reduziere|senke) (das tempo|die geschwindigkeit|dein tempo|deine geschwindigkeit) [<bit>]",
        "langsam",
    ),
    "faster": (
        "[<speak>] [<bit>] schneller [<bit>] [sprechen|reden|machen|werden]",
        "(nicht so|weniger) langsam",
        "(sprich|rede|red) nicht so langsam",
        "(sprich|rede|lies) [<bit>] schnell",
        "(du (sprichst|redest|bist)|das ist|das war|es ist) [<bit>] zu langsam",
        "zu langsam",
        "(erhöh|erhöhe|steigere) (das tempo|die geschwindigkeit|dein tempo|deine geschwindigkeit) [<bit>]",
        "beeil dich",
    ),
    "normal": (
        "[<speak>] [wieder] (normal|ganz normal|wie vorher|wie immer|wie zuvor) [sprechen|reden]",
        "(sprich|rede) wieder [ganz] (normal|wie vorher|wie zuvor)",
        "(zurück|geh zurück|stell zurück) (zu|zur|zum|auf)+ [normaler|normale|normalen|normales] (normal|lautstärke|geschwindigkeit|stimme|tempo)",
        "normale (lautstärke|geschwindigkeit|stimme|tempo)",
        "normales tempo",
        "(setz|setze|stell) (die|deine)+ (lautstärke|geschwindigkeit|stimme) zurück",
    ),
}
