"""Names of cities and countries, with their time zones.

The tz database itself names some cities. This module adds other cities that people ask for, and
countries with a single time zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from zoneinfo import available_timezones

CONTINENTS = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
OTHERS = {
    "Africa/Cairo": "Egypt",
    "Africa/Johannesburg": "Cape Town|South Africa|Durban",
    "Africa/Nairobi": "Kenya",
    "Africa/Lagos": "Nigeria",
    "Africa/Casablanca": "Morocco|Marrakesh",
    "America/Argentina/Buenos_Aires": "Argentina|Buenos Aires",
    "America/Bogota": "Colombia",
    "America/Chicago": "Houston|Dallas|Austin|New Orleans|Minneapolis|San Antonio|Nashville|Texas",
    "America/Denver": "Salt Lake City|Colorado",
    "America/Edmonton": "Calgary",
    "America/Lima": "Peru",
    "America/Los_Angeles": "San Francisco|Seattle|San Diego|Las Vegas|Portland|California"
    "|Silicon Valley|LA",
    "America/New_York": "Boston|Washington|Washington DC|Miami|Atlanta|Philadelphia|New York City"
    "|Florida|Orlando",
    "America/Sao_Paulo": "Rio de Janeiro|Rio|Brasilia",
    "America/Toronto": "Montreal|Ottawa|Quebec",
    "Asia/Bangkok": "Thailand",
    "Asia/Dubai": "Abu Dhabi",
    "Asia/Ho_Chi_Minh": "Vietnam|Hanoi|Saigon|Ho Chi Minh City",
    "Asia/Jerusalem": "Israel|Tel Aviv",
    "Asia/Kolkata": "India|Delhi|New Delhi|Mumbai|Bangalore|Chennai|Kolkata|Calcutta",
    "Asia/Manila": "Philippines|the Philippines",
    "Asia/Riyadh": "Saudi Arabia",
    "Asia/Seoul": "South Korea|Korea",
    "Asia/Shanghai": "China|Beijing|Shenzhen|Peking",
    "Asia/Tokyo": "Japan|Osaka|Kyoto",
    "Asia/Dhaka": "Bangladesh",
    "Asia/Karachi": "Pakistan",
    "Asia/Tehran": "Iran",
    "Atlantic/Reykjavik": "Iceland",
    "Australia/Sydney": "Canberra",
    "Europe/Amsterdam": "Netherlands|the Netherlands|Holland|Rotterdam",
    "Europe/Athens": "Greece",
    "Europe/Berlin": "Germany|Munich|Hamburg|Frankfurt|Cologne|Stuttgart|Leipzig|Dresden",
    "Europe/Brussels": "Belgium|Antwerp",
    "Europe/Bucharest": "Romania",
    "Europe/Budapest": "Hungary",
    "Europe/Copenhagen": "Denmark",
    "Europe/Dublin": "Ireland",
    "Europe/Helsinki": "Finland",
    "Europe/Istanbul": "Turkey|Ankara",
    "Europe/Kyiv": "Ukraine|Kiev",
    "Europe/Lisbon": "Portugal|Porto",
    "Europe/London": "England|Great Britain|Britain|the UK|UK|Scotland|Wales|Edinburgh|Manchester"
    "|Liverpool|Glasgow|Birmingham|Oxford|Cambridge",
    "Europe/Madrid": "Spain|Barcelona|Valencia|Seville|Bilbao|Malaga",
    "Europe/Moscow": "Saint Petersburg|St Petersburg",
    "Europe/Oslo": "Norway|Bergen",
    "Europe/Paris": "France|Lyon|Marseille|Nice|Bordeaux",
    "Europe/Prague": "Czech Republic|the Czech Republic|Czechia",
    "Europe/Rome": "Italy|Milan|Naples|Florence|Venice|Turin|Bologna",
    "Europe/Stockholm": "Sweden|Gothenburg",
    "Europe/Vienna": "Austria|Salzburg|Graz",
    "Europe/Warsaw": "Poland|Krakow",
    "Europe/Zurich": "Switzerland|Geneva|Basel|Bern",
    "Pacific/Auckland": "New Zealand|Wellington",
    "Pacific/Honolulu": "Hawaii",
}


@cache
def english() -> Mapping[str, str]:
    """Return the time zones of cities and countries by their English names, e.g. `Japan`:
    `Asia/Tokyo`."""
    zones = sorted(key for key in available_timezones() if key.partition("/")[0] in CONTINENTS)
    found = {key.rpartition("/")[2].replace("_", " "): key for key in zones}
    return found | {name: zone for zone, names in OTHERS.items() for name in names.split("|")}
