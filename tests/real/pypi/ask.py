"""Asks in one way, the argument, and prints what was answered."""

import sys
import time

import questionary
from InquirerPy import inquirer
from prompt_toolkit.shortcuts import yes_no_dialog
from simple_term_menu import TerminalMenu

TASKS = ["Order a pizza", "Make a reservation", "Ask for hours"]
WAYS = {
    "questionary-select": lambda: questionary.select("What do you want to do?", choices=TASKS).ask(),
    "questionary-checkbox": lambda: questionary.checkbox("Select toppings", choices=["cheese", "ham"]).ask(),
    "inquirerpy-select": lambda: inquirer.select(message="Select an action:", choices=["Upload", "Exit"]).execute(),
    "simple-term-menu": lambda: TerminalMenu(["Allow", "Always allow", "Deny"], title="Run the tool?").show(),
    "buttons": lambda: yes_no_dialog(title="Confirm", text="Do you want to delete it?").run(),
    "enter": lambda: input("Press Enter to continue..."),
    "letters": lambda: input("Add it to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: "),
}
answer = WAYS[sys.argv[1]]()
print(f"answered {answer!r}", flush=True)
time.sleep(600)
