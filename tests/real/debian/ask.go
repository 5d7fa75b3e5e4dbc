// Asks in one way, the argument, and prints what was answered. Built with Debian's packages of the libraries.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/AlecAivazis/survey"
	"github.com/charmbracelet/bubbles/list"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"
	"github.com/manifoldco/promptui"
	"github.com/rivo/tview"
)

var parts = []string{"Auth", "Storage", "Mail"}

// The tutorial's: a cursor before the one that is chosen.
type choice struct{ at int }

func (m choice) Init() tea.Cmd { return nil }

func (m choice) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	if key, ok := message.(tea.KeyMsg); ok {
		switch key.String() {
		case "up":
			m.at = (m.at + len(parts) - 1) % len(parts)
		case "down":
			m.at = (m.at + 1) % len(parts)
		case "enter", "ctrl+c":
			return m, tea.Quit
		}
	}
	return m, nil
}

func (m choice) View() string {
	rows := []string{"Which part do you want?", ""}
	for at, part := range parts {
		mark := " "
		if at == m.at {
			mark = ">"
		}
		rows = append(rows, mark+" "+part)
	}
	return strings.Join(append(rows, "", "Press q to quit."), "\n") + "\n"
}

type item string

func (i item) FilterValue() string { return string(i) }
func (i item) Title() string       { return string(i) }
func (i item) Description() string { return "a part" }

type listed struct{ list list.Model }

func (m listed) Init() tea.Cmd { return nil }

func (m listed) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch told := message.(type) {
	case tea.KeyMsg:
		if told.String() == "enter" || told.String() == "ctrl+c" {
			return m, tea.Quit
		}
	case tea.WindowSizeMsg:
		m.list.SetSize(told.Width, told.Height)
	}
	var next tea.Cmd
	m.list, next = m.list.Update(message)
	return m, next
}

func (m listed) View() string { return m.list.View() }

type typed struct{ input textinput.Model }

func (m typed) Init() tea.Cmd { return textinput.Blink }

func (m typed) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	if key, ok := message.(tea.KeyMsg); ok && (key.String() == "enter" || key.String() == "ctrl+c") {
		return m, tea.Quit
	}
	var next tea.Cmd
	m.input, next = m.input.Update(message)
	return m, next
}

func (m typed) View() string {
	return "What's your favourite fruit?\n\n" + m.input.View() + "\n\n(esc to quit)\n"
}

func bubbletea(kind string) interface{} {
	var model tea.Model = choice{}
	var options []tea.ProgramOption
	switch kind {
	case "list":
		items := []list.Item{}
		for _, part := range parts {
			items = append(items, item(part))
		}
		shown := list.NewModel(items, list.NewDefaultDelegate(), 0, 0)
		shown.Title = "Which part do you want?"
		model = listed{shown}
		options = append(options, tea.WithAltScreen())
	case "input":
		input := textinput.NewModel()
		input.Placeholder = "Mango"
		input.Focus()
		model = typed{input}
	}
	end, failed := tea.NewProgram(model, options...).StartReturningModel()
	if failed != nil {
		return failed
	}
	switch ended := end.(type) {
	case choice:
		return parts[ended.at]
	case listed:
		return ended.list.SelectedItem()
	case typed:
		return ended.input.Value()
	}
	return nil
}

func asked(kind string) interface{} {
	var got string
	var many []string
	var yes bool
	switch kind {
	case "select":
		survey.AskOne(&survey.Select{Message: "Which part do you want?", Options: parts}, &got)
	case "multi":
		survey.AskOne(&survey.MultiSelect{Message: "Which parts do you want?", Options: parts}, &many)
		return many
	case "confirm":
		survey.AskOne(&survey.Confirm{Message: "Do you want to delete it?"}, &yes)
		return yes
	case "password":
		survey.AskOne(&survey.Password{Message: "Please type your password"}, &got)
	default:
		survey.AskOne(&survey.Input{Message: "What is your name?"}, &got)
	}
	return got
}

func prompted(kind string) interface{} {
	switch kind {
	case "select":
		_, got, _ := (&promptui.Select{Label: "Select a part", Items: parts}).Run()
		return got
	case "confirm":
		got, failed := (&promptui.Prompt{Label: "Delete the resource", IsConfirm: true}).Run()
		return fmt.Sprint(got, failed)
	}
	got, _ := (&promptui.Prompt{Label: "Number"}).Run()
	return got
}

func viewed(kind string) interface{} {
	var got string
	app := tview.NewApplication()
	end := func(label string) { got = label; app.Stop() }
	switch kind {
	case "modal":
		modal := tview.NewModal().SetText("Do you want to quit the application?").AddButtons([]string{"Quit", "Cancel"})
		app.SetRoot(modal.SetDoneFunc(func(_ int, label string) { end(label) }), false)
	case "list":
		shown := tview.NewList()
		for _, part := range parts {
			name := part
			shown.AddItem(name, "a part", 0, func() { end(name) })
		}
		app.SetRoot(shown, true)
	default:
		form := tview.NewForm().AddInputField("Name", "", 20, nil, nil).AddButton("Save", func() { end("saved") })
		form.SetBorder(true).SetTitle("Who are you?")
		app.SetRoot(form, true)
	}
	if failed := app.Run(); failed != nil {
		return failed
	}
	return got
}

func main() {
	words := strings.Fields(os.Args[1])
	libraries := map[string]func(string) interface{}{
		"bubbletea": bubbletea, "survey": asked, "promptui": prompted, "tview": viewed,
	}
	fmt.Printf("answered %v\n", libraries[words[0]](words[1]))
	time.Sleep(10 * time.Minute)
}
