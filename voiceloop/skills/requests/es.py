"""Templates of Spanish requests. `skills.template` explains how they are written."""

from __future__ import annotations

LEADS = (
    "oye|hola|eh|hey|vale|okay|ok|bueno|bien|pues|y|entonces|ahora|por favor|porfa|sí|perdona|perdón|disculpa"
    "|escucha|ordenador|computadora|asistente|voiceloop|mm|gracias|genial|perfecto|a ver|mira|buenas|buenos días"
    "|buenas tardes|una pregunta|pero"
    "|[me|te|nos] (puedes|podrías|puede|podría|quieres|querrías)|(quiero|quisiera|necesito|me gustaría|quería) [que [me]]"
    "|te importaría|serías tan amable de|haz el favor de|me harías el favor de|(puedo|podría) preguntarte [algo|una cosa]"
)
TAILS = (
    "por favor|porfa|ahora|ahora mismo|gracias|muchas gracias|para mí|entonces|si puedes|si (no te importa|es posible)"
    "|vale|okay|ok|en este momento|actualmente|exactamente|ya|ordenador|computadora|asistente|rápido|mismo|de nuevo por favor"
    "|amigo|enseguida|inmediatamente|un momento"
)
NAMED = {
    "ask": "[(dime|dígame|decirme|me dices|me digas|decir|indícame|muéstrame|cuéntame|saber|quiero saber|necesito saber"
    "|me gustaría saber|sabes|sabe|tienes idea de|me puedes decir|podrías decirme|puedes decirme|averigua|comprueba|mira"
    "|recuérdame|recordarme|me recuerdas)]",
    "calc": "(cuánto (es|son|da|dan|hace|hacen|suma|suman|vale|valen)|qué (es|son|da|dan|resulta de|sale de)|cuál es (el resultado de|la suma de)"
    "|cuál es|calcula|calcular|calcúlame|resuelve|resolver|cuánto me da|haz la cuenta de|el resultado de|dime)",
    "set": "(pon|pones|me pones|ponme|poner|ponerme|pongas|inicia|iniciar|inicies|crea|crear|programa|programar|programes|configura|configurar|activa|activar"
    "|empieza|empezar|comienza|haz|dame|quiero|necesito|establece|establecer|arranca|lanza|prográmame|iníciame|añade|abre)",
    "a": "(un|una|el|la|otro|otra|mi|nuevo|nueva|uno)+",
    "for": "(de|para|a|en|por|con|durante)",
    "again": "(otra vez|de nuevo|una vez más|nuevamente|1 vez más|otra vez más)",
    "bit": "(un poco|un poquito|algo|poco|mucho|más|bastante|aún|todavía|un poco más|un pelín)",
    "mine": "(el|la|los|las|mi|mis|este|esta|ese|esa|del|al|de la|nuestro|algún|alguna|un|una)",
    "timer": "{what:thing}",
    "speak": "(habla|hable|hablar|hables|háblame|hablarme|dilo|di|lee|ponlo|ponte|sé|suena|ve|vete|decirlo)",
    "stopping": "(para|pare|parar|páralo|para ya|para de (hablar|leer|contar)|callarte|callarse|pararte|detente|detén|detenerse|alto|stop|basta|basta ya|ya basta|ya está|ya vale"
    "|es suficiente|ya es suficiente|ya está bien|que pares|estate (callado|callada|quieto)|suficiente|con eso (basta|es suficiente)|así está bien|cállate|calla|callar|cállese|silencio|guarda silencio|haz silencio|chis|chitón|shh"
    "|deja de (hablar|leer|contar)|no (sigas|hables más|digas nada|digas nada más|digas más|continúes)|déjalo|déjelo|olvídalo|olvida (eso|esto|lo dicho)|da igual"
    "|no importa|no es nada|nada|cancela|cancelar|espera|espere|espera (un momento|un segundo|un minuto|ahí)|un (momento|momentito|segundo)|pausa|ni una palabra más|ya no más|no más|quieto)",
    "thanking": "(gracias|1000 gracias|muchas gracias|muchísimas gracias|mil gracias|te lo agradezco [mucho]|se agradece|gracias de nuevo|te doy las gracias|muy agradecido|muy agradecida|gracias a ti)"
    " [por (todo|la (ayuda|información|respuesta|explicación)|tu (ayuda|tiempo|respuesta|paciencia)|eso|el (consejo|chiste|cuento)|ayudarme|la ayuda)]",
    "praise": "(genial|perfecto|estupendo|muy bien|bien|vale|okay|ok|excelente|fantástico|maravilloso|buenísimo|bueno|qué bien|ah|oh|sí|pues"
    "|(eres|has sido|fue|es|está|estuvo) [muy|tan|realmente] (amable|útil|bueno|buena|genial|bien|interesante|el mejor|la mejor)|buen trabajo|de acuerdo|claro)",
    "bye": "(adiós|chao|chau|hasta (luego|mañana|pronto|la vista|otra|la próxima|después|el próximo día|entonces|siempre|ahora|el lunes)|nos vemos [luego|mañana|pronto|otro día]"
    "|hablamos [luego|mañana|pronto|después]|que (te vaya bien|tengas [un] buen día|pases [un] buen día|tengas [una] buena tarde|te diviertas)|cuídate|buen día|feliz día|buen fin de semana"
    "|(me tengo que|tengo que|debo|necesito|me) (ir|irme|marchar|marcharme|voy|dejar|dejarte|marcho) [ya|ahora]|me voy [ya|ahora]|ya me voy|bye|bye bye"
    "|(termina|terminar|acaba|cierra|finaliza|finalizar|terminemos) (la|esta|el|nuestra) (conversación|charla|sesión|programa|aplicación|llamada)|me despido|cuelga|hemos terminado|ya terminamos|ya hemos terminado|he terminado)",
    "night": "(buenas noches|que descanses|que duermas bien|que sueñes con los angelitos|dulces sueños|felices sueños|descansa|a dormir)",
    "done": "((eso|esto) (es|era|sería|fue) todo|nada más|eso es|con eso es todo|ya no necesito (nada|más|nada más)|no necesito [nada] más|no tengo más preguntas|ninguna pregunta más|ya está todo)"
    " [por (hoy|ahora|el momento)]",
    "name": "(asistente|ordenador|amigo|amiga|a todos|a ti|entonces|voiceloop)",
    "cancel": "(cancela|cancelar|canceles|para|parar|pares|detén|detener|borra|borrar|borres|elimina|eliminar|quita|quitar|quites|apaga|apagar|apagues|desactiva|desactivar|termina|anula|anular|olvida|cancélame|quítame|silencia)",
    "when": "([a|para|sobre] {time} [de|el|para] [{day}]|[para|el] {day} (a|para|sobre) {time})",
    "amount": "({amount}|[un|una] {v:unit})",
    "into": "(en|a|como)",
}
RULES = {
    "time": (
        "<ask> qué hora (es|tienes|tenemos|será|son|es ya)",
        "<ask> (cuál es|qué es) la hora [actual|exacta|ahora]",
        "<ask> la hora [actual|exacta|que es]",
        "<ask> qué horas son",
        "(tienes|tiene) [la] hora",
        "[me] (dices|das|puedes dar) la hora",
        "dame la hora [actual|exacta]",
        "hora actual",
    ),
    "time_in": (
        "<ask> qué hora (es|será|son|tienen|tienen ahora) [ahora|ahora mismo|allí|en este momento] en {city}",
        "<ask> cuál es la hora [actual|local] en {city}",
        "<ask> la hora [actual|local|que es] [es] en {city}",
        "<ask> qué hora es allí en {city}",
        "<ask> en {city} qué hora es",
        "hora [actual|local] (en|de) {city}",
    ),
    "time_later": (
        "<ask> qué hora (será|es|va a ser|serán|tendremos|sería) (en|dentro de) {duration}",
        "(en|dentro de) {duration} qué hora (será|es)",
        "<ask> qué hora (en|dentro de) {duration}",
    ),
    "time_ago": (
        "<ask> qué hora (era|fue|es) hace {duration}",
        "hace {duration} qué hora era",
    ),
    "day": (
        "<ask> (qué|cuál) día [de la semana|del mes] (es|será|fue|era|cae|estamos|tenemos|va a ser|caerá) [el|hoy] [{day}]",
        "<ask> a qué día (estamos|estaremos|estábamos) [{day}]",
        "<ask> a (cuánto|cuántos) estamos [{day}]",
        "<ask> (qué|cuál) (es|será|era|fue) [la] fecha [de|es|del] [{day}]",
        "<ask> (qué|cuál es la) fecha (es|será|era|fue|tenemos|estamos|de|hay|cae) [{day}]",
        "<ask> la fecha [actual|de] [{day}]",
        "<ask> cuál es la fecha [actual|exacta] [de] [{day}]",
        "<ask> en qué día [de la semana] (estamos|cae|caerá|cayó|es|fue) [{day}]",
        "<ask> [{day}] qué día (es|será|fue|era)",
        "<ask> {day} (es|será) qué día",
        "<ask> (cuándo|en qué fecha|qué fecha) (es|será|cae|fue|son|es el) {day} [este año]",
        "(es|hoy es) [hoy] {w:weekday} [hoy]",
        "<ask> a qué fecha (estamos|estaremos) [{day}]",
        "<ask> cuál es el día de {day}",
        "<ask> qué día de la semana (cae|es|será|fue) [el] {day}",
        "fecha de {day}",
    ),
    "day_after": (
        "<ask> (qué|cuál) (día|es el día) (viene|va|sigue|es|está|hay|que viene|que va|que sigue) [justo] (después del|después de|tras el|al|detrás del|a) {weekday}",
        "<ask> (qué|cuál) es el día (siguiente al|después del|posterior al) {weekday}",
        "<ask> qué (viene|sigue) (después del|al|tras el|después de) {weekday}",
    ),
    "day_before": (
        "<ask> (qué|cuál) (día|es el día) (viene|va|es|está|hay|que viene|que va|precede) [justo] (antes del|antes de|al|delante del) {weekday}",
        "<ask> (qué|cuál) es el día (anterior al|antes del|previo al) {weekday}",
        "<ask> qué (viene|va) antes del {weekday}",
    ),
    "month": (
        "<ask> (en|a) qué mes (estamos|vivimos)",
        "<ask> (qué|cuál) (mes es|mes tenemos|es el mes actual|es el mes)",
    ),
    "year": (
        "<ask> (en|a) qué año (estamos|vivimos)",
        "<ask> (qué|cuál) (año es|año tenemos|es el año actual|es el año)",
    ),
    "week": (
        "<ask> en qué semana [del año] estamos",
        "<ask> qué [número de] semana [del año] (es|tenemos)",
    ),
    "days_until": (
        "<ask> (cuántos|cuántas) {p:period} (faltan|quedan|hay|son|falta|queda|nos quedan|me quedan) (para|hasta|a|para que llegue|para que sea) [el|la|las|los] {day}",
        "<ask> (cuántos|cuántas) {p:period} (para|hasta|a) [el|la|las|los] {day} [faltan|quedan]",
        "<ask> (cuánto|cuánto tiempo) (falta|queda|hay) (para|hasta|para que llegue|para que sea) [el|la|las|los] {day}",
        "<ask> dentro de (cuántos|cuántas) {p:period} es [el|la] {day}",
        "<ask> en (cuántos|cuántas) {p:period} es [el|la] {day}",
        "<ask> {p:period} que faltan para [el|la] {day}",
    ),
    "days_since": (
        "<ask> (cuántos|cuántas) {p:period} (han pasado|hace|han transcurrido|van) (desde|que fue|de) [el|la] {day}",
        "<ask> hace (cuántos|cuántas) {p:period} (fue|que fue) [el|la] {day}",
        "<ask> (cuánto|cuánto tiempo) (hace|ha pasado) (desde|de|que fue) [el|la] {day}",
    ),
    "time_until": (
        "<ask> (cuánto|cuánto tiempo|cuántas horas|cuántos minutos) (falta|queda|faltan|quedan|hay) (para|hasta) {time}",
        "<ask> (cuánto|cuánto tiempo|cuántas horas|cuántos minutos) (para|hasta) {time}",
    ),
    "timer": (
        "[<set>] [<a>] (temporizador|temporizadores|cronómetro|timer|cuenta atrás|cuenta regresiva|contador) [<for>] {duration}",
        "[<set>] [<a>] (temporizador|timer|cuenta atrás) [<for>] {duration} (llamado|con el nombre [de]|para) [el|la|los|las|mi] {name:words}",
        "[<set>] [<a>] (temporizador|timer) (para|de) [el|la|los|las|mi] {name:label} <for> {duration}",
        "[<set>] [<a>] (temporizador|timer) {name:label} <for> {duration}",
        "[<set>] [<a>] (temporizador|timer) (llamado|con el nombre [de]) {name:label} [<for>] {duration}",
        "[<set>] {duration} (en el|de|con el) (temporizador|cronómetro|timer|reloj)",
        "(avísame|avisa|avisarme|avisar|avises|despiértame|despertarme|llámame|recuérdame|suena|alértame|me avisas|me despiertas) (en|dentro de) {duration}",
        "(en|dentro de) {duration} (avísame|avisa|despiértame|me avisas|suena)",
        "[<set>] [<a>] alarma (en|dentro de|de) {duration}",
        "(cuenta|contar) {duration} [hacia atrás]",
        "cronometra {duration}",
        "{duration} [de] (temporizador|cuenta atrás)",
    ),
    "timer_asks": ("<set> [<a>] (temporizador|timer|cuenta atrás)", "un temporizador"),
    "duration": ("[de|para|por|durante|en|unos|digamos] {duration}",),
    "alarm": (
        "[<set>] [<a>] alarma [para] <when>",
        "(suena|avísame|avisa|alarma) <when>",
    ),
    "wake": (
        "[<set>] [<a>] (despertador|alarma despertador) [para] <when>",
        "(despiértame|despertarme|despierta|despiertes|me despiertas|levántame) <when>",
        "(tengo que|necesito|debo|quiero) (levantarme|despertarme|despertar|estar despierto|estar despierta) <when>",
    ),
    "reminder": (
        "(recuérdame|recordarme|recuerda|me recuerdas|recuerdes) (en|dentro de) {duration} [que|de] {name:words}",
        "(recuérdame|recordarme|recuerda|me recuerdas|recuerdes) [que|de] {name:words} (en|dentro de) {duration}",
        "<set> [<a>] recordatorio (en|dentro de|para dentro de) {duration} (para|de|que) {name:words}",
    ),
    "reminder_at": (
        "(recuérdame|recordarme|me recuerdas|recuerdes) <when> [que|de] {name:words}",
        "(recuérdame|recordarme|me recuerdas|recuerdes) [que|de] {name:words} <when>",
    ),
    "timer_left": (
        "<ask> cuánto [tiempo] (queda|falta|le queda|me queda|nos queda|resta) [en|a|para|de|al|del|en el|para el|para que] [<mine>] [{name:label}] <timer> [de {name:words}]",
        "<ask> cuánto [tiempo] (me queda|nos queda|queda|falta)",
        "<ask> (cuánto tiempo|cuántos minutos|cuántos segundos) (queda|quedan|falta|faltan|le quedan|resta|restan|me queda|le falta|le faltan|le queda) [[en|a|para|de|al|del] [<mine>] [{name:label}] <timer>]",
        "<ask> cuánto (queda|falta) para que (suene|acabe|termine) [<mine>] [{name:label}] <timer>",
        "<ask> cuándo (suena|acaba|termina|sonará|terminará|se acaba) [<mine>] [{name:label}] <timer> [de {name:words}]",
        "<ask> (qué|cuántos|cuántas|cuáles) <timer> (hay|tengo|están|están puestos|están puestas|tenemos|están activos|corren) [puestos|puestas|activos|activas|en marcha]",
        "(hay|tengo) [algún|alguna|un|una] <timer> [puesto|puesta|activo|activa|en marcha]",
        "(muéstrame|enséñame|lista|dime) [todos|todas] [<mine>] <timer>",
        "cómo va [<mine>] [{name:label}] <timer>",
    ),
    "timer_cancel_all": (
        "<cancel> (todos|todas|ambos|ambas) [los|las|mis] <timer>",
        "<cancel> (los|las|mis) (temporizadores|alarmas|recordatorios|timers)",
        "<cancel> todo",
    ),
    "timer_cancel": (
        "<cancel> [<mine>] [{name:label}] <timer>",
        "<cancel> [<mine>] (temporizador|timer) (de|para) {duration}",
        "<cancel> [<mine>] <timer> (de|para|del|de la|de los|para la|para el|llamado) [el|la|los|las] {name:label}",
        "<cancel> [<mine>] (alarma|despertador) (de|para|a) {time}",
        "ya no (necesito|quiero) [<mine>] [{name:label}] <timer>",
    ),
    "sum": (
        "<ask> [<calc>] {sum} [es|son|da|igual a|hace]",
        "(<calc>|cuántos son|cuántas son) {a:number} y {b:number} [juntos]",
    ),
    "convert": (
        "<ask> (cuántos|cuántas) {u:unit} (son|hay en|tiene|tienen|es|hacen|equivalen a|hacen falta para|caben en|hay|contiene|forman)+ [en] <amount>",
        "<ask> <amount> (cuántos|cuántas) {u:unit} (son|es|tiene|tienen|hay)",
        "<ask> [<calc>] <amount> [convertido|convertidos|expresado|pasado] <into> {u:unit}",
        "<ask> (a cuánto|a cuántos|a cuántas) [{u:unit}] (equivale|equivalen|corresponden) <amount> [en {u:unit}]",
        "(convierte|convertir|conviertas|convierta|pasa|pasar|pases|transforma|cambia|traduce|conviérteme|pásame) <amount> <into> {u:unit}",
        "<ask> (cuánto|cuántos|cuántas) (es|son|mide|miden|pesa|pesan) <amount> en {u:unit}",
    ),
    "remember": (
        "(recuerda|recuérdame|acuérdate de|memoriza|ten en cuenta|ten presente|anota|apunta|toma nota de)"
        " que {fact:words}",
        "no (olvides|te olvides de) que {fact:words}",
        "(quiero que|necesito que) (recuerdes|te acuerdes de) que {fact:words}",
        "(recuerda|memoriza) {fact:own}",
    ),
    "facts": (
        "<ask> qué (recuerdas|sabes) (de|sobre) mí",
        "<ask> (qué|de qué) te acuerdas [de mí|sobre mí]",
        "<ask> qué te (pedí|dije|he pedido|he dicho) que (recordaras|recordases|recuerdes)",
        "<ask> lo que (recuerdas|sabes) (de|sobre) mí",
    ),
    "forget_last": ("olvida (eso|esto|lo que acabo de decir|lo que te acabo de decir)",),
    "forget_all": (
        "(olvida|borra) todo (lo que (sabes|recuerdas) (de|sobre) mí|lo que te (dije|he dicho)|sobre mí)",
    ),
    "forget_fact": (
        "(olvida|borra) que {fact:words}",
        "olvida {fact:own}",
    ),
    "recall": (
        "<ask> qué te (he|acabo de|había)+ (preguntado|preguntar|dicho|decir|pedido|pedir) [antes|ahora|hace un momento]",
        "<ask> qué te (pregunté|dije|pedí|preguntaba|decía) [antes|ahora|hace un momento|recién|justo antes]",
        "<ask> lo que te (pregunté|dije|pedí|acabo de preguntar|acabo de decir|he preguntado|he dicho) [antes|ahora|hace un momento]",
        "<ask> qué (acabo de|he) (preguntar|preguntado|preguntarte|decir|dicho|decirte)",
        "<ask> cuál (fue|era|ha sido) mi [última|anterior] (pregunta|petición)",
        "(repite|repíteme|repetir|lee|léeme) mi [última|anterior] (pregunta|petición) [otra vez]",
        "<ask> mi [última] pregunta",
        "<ask> qué (pregunté|dije|pedí) [antes]",
        "<ask> (qué|cuál) (fue|es) lo último que te (pregunté|dije|pedí|he preguntado|he dicho)",
        "te acuerdas de lo que te (pregunté|dije|he preguntado|he dicho)",
        "(repite|repetir) lo que (te)+ (pregunté|dije|he preguntado|acabo de preguntar|acabo de decir)",
    ),
    "recall_first": (
        "<ask> cuál (fue|era) (mi|la) primera pregunta [que te hice]",
        "<ask> qué [es lo que] te (pregunté|dije|pedí|he preguntado|he dicho) (primero|al principio|en primer lugar)",
        "<ask> (qué|cuál) (fue|es) lo primero que te (pregunté|dije|pedí|he preguntado)",
    ),
    "repeat": (
        "(repite|repítelo|repetir|repetirlo|repítemelo|repitas|repetirme|repita|me repites|me lo repites|me lo puedes repetir|puedes repetirlo) [eso|esto|lo|la respuesta|tu respuesta|lo que has dicho|lo que dijiste|lo último|la última (frase|respuesta)|la última parte] [<again>]",
        "(dilo|dímelo|dime eso|di eso|decirlo|cuéntamelo|decírmelo) <again>",
        "^ <again>",
        "(qué|cómo) (has dicho|dijiste|decías|dices) [<again>]",
        "(cómo|qué) (dices|fue eso|era eso)",
        "(cómo|perdón|perdón cómo|cómo perdón)",
        "no (te|lo|la) (he (oído|entendido|escuchado)|oí|entendí|escuché|entiendo) [bien]",
        "no (he (oído|entendido)|entendí|oí) (eso|lo que has dicho|lo que dijiste|nada|bien)",
        "<again> más despacio",
    ),
    "stop": ("[no] [<praise>] (<stopping> )+ [<praise>] [<thanking>] [<name>]",),
    "undo": (
        "(cancélalo|cancela eso|anúlalo|anula eso|deshazlo|deshaz eso|quítalo|bórralo)",
        "mejor no",
    ),
    "thanks": (
        "(<praise> )+ (<thanking> )+ [<praise>] [<name>]",
        "(<thanking> )+ [<praise>] [<name>]",
    ),
    "done": (
        "[<praise>] [no] [<thanking>] [no] <done> [<praise>] (<thanking> )+ [<name>]",
        "[<praise>] [no] (<thanking> )+ [no] <done> [<name>]",
    ),
    "goodbye": (
        "[<praise>] [<praise>] [<thanking>] [<praise>] [<done>] [<thanking>] [<name>] (<bye> )+ [<name>] [<thanking>] [<bye>]",
    ),
    "night": (
        "[<praise>] [<thanking>] [<done>] [<bye>] (<night> )+ [<name>] [<bye>] [<thanking>] [y] [<night>]",
    ),
    "louder": (
        "[<speak>] [<bit>] (más alto|más fuerte|más duro|en voz más alta|en voz alta)",
        "(sube|subir|subas|aumenta|aumentar|súbele|súbelo) [el|la|tu|al]+ (volumen|voz|sonido) [<bit>]",
        "(sube|súbelo|súbele) [<bit>] [la voz|el volumen]",
        "(sube|súbelo|súbele) (el|la|tu|al)+ (volumen|voz) [<bit>]",
        "[el] volumen más alto",
        "no te (oigo|escucho) [bien]",
        "(casi|apenas) [no] te (oigo|escucho)",
        "(hablas|estás hablando|está|suena) [<bit>] (demasiado|muy) (bajo|bajito|flojo)",
        "(demasiado|muy) (bajo|bajito|flojo)",
    ),
    "softer": (
        "[<speak>] [<bit>] (más bajo|más bajito|más suave|más flojo|en voz baja|en voz más baja|bajito|más flojito)",
        "(baja|bajar|bajes|reduce|reducir|disminuye|bájale|bájalo) (el|la|tu|al)+ (volumen|voz|sonido) [<bit>]",
        "(baja|bájalo|bájale) [<bit>] [la voz|el volumen]",
        "[el] volumen más bajo",
        "no (grites|hables tan alto|hables tan fuerte|tan alto|tan fuerte)",
        "(hablas|estás hablando|está|suena) [<bit>] (demasiado|muy) (alto|fuerte)",
        "(demasiado|muy) (alto|fuerte)",
        "no tan (alto|fuerte)",
    ),
    "slower": (
        "[<speak>|ir|ve] [<bit>] (más despacio|más lento|más lentamente|despacio|más despacito|más pausado|más tranquilo)",
        "no (vayas|hables|leas|vaya|corras)+ [tan] (rápido|deprisa|aprisa|de prisa)",
        "no tan (rápido|deprisa)",
        "(hablas|vas|estás hablando|es) [<bit>] (demasiado|muy) (rápido|deprisa|aprisa)",
        "(demasiado|muy) rápido",
        "(reduce|baja|disminuye) (la|tu)+ velocidad [<bit>]",
        "(ve|vete) [<bit>] más despacio",
    ),
    "faster": (
        "[<speak>] [<bit>] (más rápido|más deprisa|más aprisa|más de prisa|más ligero)",
        "no (vayas|hables|leas)+ tan (lento|despacio)",
        "no tan (lento|despacio)",
        "(hablas|vas|estás hablando|es) [<bit>] (demasiado|muy) (lento|despacio)",
        "(demasiado|muy) (lento|despacio)",
        "(aumenta|sube) (la|tu)+ velocidad [<bit>]",
        "(acelera|date prisa|apúrate)",
    ),
    "normal": (
        "(vuelve|volver|vuelvas|regresa) a (la|lo|tu|el)+ (normal|velocidad normal|volumen normal|voz normal|normalidad|de antes|voz de siempre|velocidad de antes|volumen de antes)",
        "[<speak>] [otra vez|de nuevo] (normal|normalmente|como antes|como siempre|con normalidad) [otra vez|de nuevo]",
        "(velocidad|volumen|voz) normal",
        "(restablece|reinicia) (la|el|tu)+ (velocidad|volumen|voz)",
    ),
}
