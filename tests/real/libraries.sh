#!/bin/sh
parts='auth Auth storage Storage mail Mail'
ticked='auth Auth off storage Storage on mail Mail off'
ask() {
  case "$1" in
  "dialog yesno") dialog --yesno "Deploy to production?" 8 40 ;;
  "dialog msgbox") dialog --msgbox "The disk is full." 8 40 ;;
  "dialog menu") dialog --menu "Which part do you want?" 12 50 4 $parts ;;
  "dialog checklist") dialog --checklist "Which parts do you want?" 12 50 4 $ticked ;;
  "dialog radiolist") dialog --radiolist "Which part do you want?" 12 50 4 $ticked ;;
  "dialog inputbox") dialog --inputbox "What is your name?" 10 50 ;;
  "dialog passwordbox") dialog --passwordbox "Your password:" 10 50 ;;
  "dialog inputmenu") dialog --inputmenu "Rename what?" 20 60 10 $parts ;;
  "dialog form") dialog --form "Who are you?" 12 50 3 "Name:" 1 1 "" 1 10 20 0 "City:" 2 1 "" 2 10 20 0 ;;
  "dialog calendar") dialog --calendar "Which day?" 0 0 1 1 2030 ;;
  "dialog timebox") dialog --timebox "At what time?" 0 0 12 30 0 ;;
  "dialog rangebox") dialog --rangebox "How many?" 0 40 1 10 5 ;;
  "dialog fselect") dialog --fselect / 10 50 ;;
  "dialog textbox") printf 'one\ntwo\n' > text; dialog --textbox text 10 50 ;;
  "dialog editbox") printf 'one\ntwo\n' > text; dialog --editbox text 10 50 ;;
  "dialog buildlist") dialog --buildlist "Which parts do you want?" 14 60 6 $ticked ;;
  "dialog treeview") dialog --treeview "Which part do you want?" 14 60 6 auth Auth off 0 storage Storage on 1 mail Mail off 1 ;;
  "dialog pause") dialog --pause "It restarts." 12 50 500 ;;
  "whiptail yesno") whiptail --yesno "Deploy to production?" 8 40 ;;
  "whiptail msgbox") whiptail --msgbox "The disk is full." 8 40 ;;
  "whiptail menu") whiptail --menu "Which part do you want?" 12 50 4 $parts ;;
  "whiptail checklist") whiptail --checklist "Which parts do you want?" 12 50 4 $ticked ;;
  "whiptail radiolist") whiptail --radiolist "Which part do you want?" 12 50 4 $ticked ;;
  "whiptail inputbox") whiptail --inputbox "What is your name?" 10 50 ;;
  "whiptail passwordbox") whiptail --passwordbox "Your password:" 10 50 ;;
  "fzf full") printf 'auth\nstorage\nmail\n' | fzf ;;
  "fzf height") printf 'auth\nstorage\nmail\n' | fzf --height 40% ;;
  "fzf reverse") printf 'auth\nstorage\nmail\n' | fzf --height 10 --layout=reverse --border --prompt 'Which part? ' ;;
  "peco list") printf 'auth\nstorage\nmail\n' | peco ;;
  "fzy list") printf 'auth\nstorage\nmail\n' | fzy ;;
  "percol list") printf 'auth\nstorage\nmail\n' | percol ;;
  "iselect list") iselect -n it 'Which part?' '<s>auth' '<s>storage' '<s>mail' ;;
  "fzf multi") printf 'auth\nstorage\nmail\n' | fzf --multi ;;
  esac
}
case "$1" in fzf* | peco* | fzy* | percol* | iselect*) ask "$1" > answer ;; *) ask "$1" 2> answer ;; esac
code=$?
clear
echo "answered $code [$(tr '\n' ' ' < answer)]"
sleep 600
