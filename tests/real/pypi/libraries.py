"""Asks in one way, the argument, and prints what was answered."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

TASKS = ["Order a pizza", "Make a reservation", "Ask for hours"]
PARTS = ["Auth", "Storage", "Mail"]


def _inquirer(kind: str) -> Any:
    import inquirer

    asked = {
        "list": lambda: inquirer.List("it", message="What size do you need?", choices=["Large", "Medium", "Small"]),
        "checkbox": lambda: inquirer.Checkbox("it", message="What are you interested in?", choices=PARTS),
        "confirm": lambda: inquirer.Confirm("it", message="Should you continue"),
        "text": lambda: inquirer.Text("it", message="What's your name"),
    }
    return inquirer.prompt([asked[kind]()])["it"]


def _bullet(kind: str) -> Any:
    import bullet

    match kind:
        case "list":
            return bullet.Bullet("Choose a fruit:", choices=["apple", "banana", "orange"]).launch()
        case "check":
            return bullet.Check("Choose your fruits:", choices=["apple", "banana", "orange"]).launch()
        case "yesno":
            return bullet.YesNo("Delete the branch? ").launch()
        case _:
            return bullet.Input("What is your name? ").launch()


def _beaupy(kind: str) -> Any:
    import beaupy

    match kind:
        case "select":
            print("Pick a colour")
            return beaupy.select(["red", "green", "blue"])
        case "multiple":
            print("Pick your colours")
            return beaupy.select_multiple(["red", "green", "blue"])
        case "confirm":
            return beaupy.confirm("Will you take the ring to Mordor?")
        case _:
            return beaupy.prompt("What is your name?")


def _questionary(kind: str) -> Any:
    import questionary

    asked = {
        "select": lambda: questionary.select("What do you want to do?", choices=TASKS),
        "checkbox": lambda: questionary.checkbox("Select toppings", choices=["cheese", "ham"]),
        "confirm": lambda: questionary.confirm("Are you amazed?"),
        "rawselect": lambda: questionary.rawselect("What do you want to do?", choices=TASKS),
        "text": lambda: questionary.text("What's your first name"),
        "password": lambda: questionary.password("What's your secret?"),
        "autocomplete": lambda: questionary.autocomplete("Choose an ant", choices=["Camponotus", "Formica"]),
    }
    return asked[kind]().ask()


def _inquirerpy(kind: str) -> Any:
    from InquirerPy import inquirer

    asked = {
        "select": lambda: inquirer.select(message="Select an action:", choices=["Upload", "Exit"]),
        "checkbox": lambda: inquirer.checkbox(message="Select parts:", choices=PARTS),
        "confirm": lambda: inquirer.confirm(message="Proceed with it?"),
        "fuzzy": lambda: inquirer.fuzzy(message="Select a part:", choices=PARTS),
        "rawlist": lambda: inquirer.rawlist(message="Pick a part:", choices=PARTS, default=1),
        "text": lambda: inquirer.text(message="Enter your name:"),
    }
    return asked[kind]().execute()


def _ptk(kind: str) -> Any:
    from prompt_toolkit import shortcuts

    values = [(each.lower(), each) for each in PARTS]
    match kind:
        case "buttons":
            return shortcuts.yes_no_dialog(title="Confirm", text="Do you want to delete it?").run()
        case "button-dialog":
            buttons: list[tuple[str, Any]] = [("Yes", True), ("No", False), ("Maybe", None)]
            return shortcuts.button_dialog("Question", "Do you want to continue?", buttons=buttons).run()
        case "radiolist":
            return shortcuts.radiolist_dialog("Parts", "Which part do you want?", values=values).run()
        case "checkboxlist":
            return shortcuts.checkboxlist_dialog("Parts", "Which parts do you want?", values=values).run()
        case "input":
            return shortcuts.input_dialog("Name", "Please type your name:").run()
        case "message":
            return shortcuts.message_dialog("Note", "The disk is full.\nPress ENTER to quit.").run()
        case "choice":
            return shortcuts.choice(message="Please choose a dish:", options=values)
        case "confirm":
            return shortcuts.confirm("Do you confirm?")
        case _:
            return shortcuts.prompt("Give me some input: ")


def _textual(kind: str) -> Any:
    from textual.app import App, ComposeResult
    from textual.containers import Horizontal
    from textual.widgets import Button, Input, Label, OptionList, RadioSet, SelectionList

    class Asking(App[Any]):
        def compose(self) -> ComposeResult:
            yield Label("Which part do you want?")
            match kind:
                case "options":
                    yield OptionList(*PARTS)
                case "radio":
                    yield RadioSet(*PARTS)
                case "selection":
                    yield SelectionList(*((part, part) for part in PARTS))
                case "input":
                    yield Input(placeholder="its name")
                case _:
                    with Horizontal():
                        yield Button("Yes", id="yes", variant="primary")
                        yield Button("No", id="no")

        def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
            if kind == "options":
                self.exit(str(event.option.prompt))

        def on_radio_set_changed(self, event: RadioSet.Changed) -> None:
            self.exit(str(event.pressed.label))

        def on_selection_list_selected_changed(self, event: "SelectionList.SelectedChanged[str]") -> None:
            self.exit(list(event.selection_list.selected))

        def on_input_submitted(self, event: Input.Submitted) -> None:
            self.exit(event.value)

        def on_button_pressed(self, event: Button.Pressed) -> None:
            self.exit(event.button.id)

    return Asking().run()


def _termmenu(kind: str) -> Any:
    from simple_term_menu import TerminalMenu

    if kind == "multi":
        menu = TerminalMenu(PARTS, title="Which parts?", multi_select=True, show_multi_select_hint=True)
        menu.show()
        return menu.chosen_menu_entries
    return TerminalMenu(["Allow", "Always allow", "Deny"], title="Run the tool?").show()


def _pick(kind: str) -> Any:
    from pick import pick

    return pick(PARTS, "Please choose a part:", indicator="=>", multiselect=kind == "multi", min_selection_count=1)


def _cutie(kind: str) -> Any:
    import cutie

    match kind:
        case "select":
            print("Which part do you want?")
            return PARTS[cutie.select(PARTS)]
        case "multiple":
            print("Which parts do you want?")
            return cutie.select_multiple(PARTS)
        case _:
            return cutie.prompt_yes_or_no("Are you brave enough to continue?")


def _survey(kind: str) -> Any:
    import survey

    match kind:
        case "select":
            return PARTS[survey.routines.select("Which part? ", options=PARTS)]
        case "basket":
            return survey.routines.basket("Which parts? ", options=PARTS)
        case "inquire":
            return survey.routines.inquire("Is this okay? ", default=True)
        case _:
            return survey.routines.input("Name? ")


def _urwid(kind: str) -> Any:
    import urwid

    chosen: list[str] = []

    def choose(button: Any, part: str) -> None:
        chosen.append(part)
        raise urwid.ExitMainLoop

    if kind == "menu":
        body: list[Any] = [urwid.Text("Which part do you want?"), urwid.Divider()]
        for part in PARTS:
            button = urwid.Button(part)
            urwid.connect_signal(button, "click", choose, part)
            body.append(urwid.AttrMap(button, None, focus_map="reversed"))
        top: Any = urwid.ListBox(urwid.SimpleFocusListWalker(body))
    else:
        yes, no = urwid.Button("Yes"), urwid.Button("No")
        urwid.connect_signal(yes, "click", choose, "Yes")
        urwid.connect_signal(no, "click", choose, "No")
        row = urwid.Columns([urwid.AttrMap(each, None, focus_map="reversed") for each in (yes, no)])
        top = urwid.Filler(urwid.Pile([urwid.Text("Really delete it?"), row]))
    urwid.MainLoop(top, palette=[("reversed", "standout", "")]).run()
    return chosen[0]


def _newt(kind: str) -> Any:
    import snack

    screen = snack.SnackScreen()
    try:
        match kind:
            case "listbox":
                return snack.ListboxChoiceWindow(screen, "Parts", "Which part do you want?", PARTS)
            case "buttons":
                return snack.ButtonChoiceWindow(screen, "Delete", "Do you want to delete it?", ["Yes", "No"])
            case _:
                return snack.EntryWindow(screen, "Login", "Who are you?", ["Name"])
    finally:
        screen.finish()


def _click(kind: str) -> Any:
    import click

    match kind:
        case "confirm":
            return click.confirm("Do you want to continue?")
        case "choice":
            return click.prompt("Which part", type=click.Choice(["auth", "mail"]), default="auth")
        case _:
            return click.prompt("Please enter a valid integer", type=int)


def _rich(kind: str) -> Any:
    from rich.prompt import Confirm, Prompt

    match kind:
        case "confirm":
            return Confirm.ask("Do you like rich?")
        case "choices":
            return Prompt.ask("Enter your name", choices=["Paul", "Jessica", "Duncan"], default="Paul")
        case _:
            return Prompt.ask("Enter your name", default="Paul Atreides")


def _npyscreen(kind: str) -> Any:
    import npyscreen

    def form(*_: Any) -> Any:
        if kind == "yesno":
            return npyscreen.notify_yes_no("Do you want to delete it?", title="Delete")
        shown = npyscreen.Form(name="Which part do you want?")
        picked = shown.add(npyscreen.TitleSelectOne, name="Part", values=PARTS, max_height=4, scroll_exit=True)
        shown.edit()
        return picked.get_selected_objects()

    return npyscreen.wrapper_basic(form)


def _fzf(kind: str) -> Any:
    """A newer one than Debian's."""
    height = ["--height", "40%"] if kind == "height" else []
    program = str(Path(sys.executable).with_name("fzf"))
    got = subprocess.run([program, *height], input="\n".join(PARTS), stdout=subprocess.PIPE, text=True, check=False)
    return got.stdout.strip()


def _plain(kind: str) -> Any:
    return input(
        {
            "enter": "Press Enter to continue...",
            "letters": "Add it to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: ",
            "amp": "Would you like to log in? [(y)es, (n)o]: ",
            "default": "(1) delete all (2) keep [1]: ",
        }[kind]
    )


LIBRARIES: Mapping[str, Callable[[str], Any]] = {
    "inquirer": _inquirer,
    "bullet": _bullet,
    "beaupy": _beaupy,
    "questionary": _questionary,
    "inquirerpy": _inquirerpy,
    "ptk": _ptk,
    "textual": _textual,
    "termmenu": _termmenu,
    "pick": _pick,
    "cutie": _cutie,
    "survey": _survey,
    "urwid": _urwid,
    "newt": _newt,
    "click": _click,
    "rich": _rich,
    "npyscreen": _npyscreen,
    "fzf": _fzf,
    "plain": _plain,
}

if __name__ == "__main__":
    library, _, kind = sys.argv[1].partition(" ")
    answer = LIBRARIES[library](kind)
    print(f"answered {answer!r}", flush=True)
    time.sleep(600)
