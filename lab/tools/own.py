"""Six tools of a home, as a user would write them. They do nothing, but answer that it is done."""

from __future__ import annotations

from typing import Annotated, Literal

from voiceloop.tools.declared import tool

Room = Literal["kitchen", "bedroom", "living room", "bathroom"]


@tool
async def set_light(room: Room, on: bool) -> str:
    """Turn the light in a room on or off."""
    return f"the light in the {room} is {'on' if on else 'off'}"


@tool
async def set_temperature(
    room: Room, degrees: Annotated[float, "degrees Celsius, such as 20"]
) -> str:
    """Set the heating of a room."""
    return f"the {room} will have {degrees:g} degrees"


@tool
async def weather(city: str, day: Literal["today", "tomorrow"] = "today") -> str:
    """Get the weather forecast for a city."""
    return f"{city}, {day}: 18 degrees, light rain"


@tool
async def add_to_shopping_list(item: str, amount: int = 1) -> str:
    """Put something on the shopping list."""
    return f"{amount} {item} on the list"


@tool
async def play_music(what: Annotated[str, "an artist, an album or a kind of music"]) -> str:
    """Play music."""
    return f"{what} is playing"


@tool
async def send_message(to: str, text: str) -> str:
    """Send a text message to a person."""
    return f"sent to {to}"


OWN = (set_light, set_temperature, weather, add_to_shopping_list, play_music, send_message)
"""The tools that are offered."""
