#!/usr/bin/python3
"""Draws how many clients know a change after so many seconds.

    reach_sim --story rolling --curve | draw.py > known.svg     any number of stories
"""

import sys

WIDTH, HEIGHT, LEFT, BOTTOM, SECONDS = 640, 320, 50, 40, 80
COLOURS = ("#1b6ca8", "#c0392b", "#2e7d32", "#7b5ea7", "#b9770e")


def x(seconds):
    return LEFT + seconds * (WIDTH - LEFT - 20) / SECONDS


def y(percent):
    return HEIGHT - BOTTOM - percent * (HEIGHT - BOTTOM - 20) / 100


def curves(lines):
    found = {}
    for line in lines:
        if line[:1].isalpha() and ":" in line:
            story = line.split(":")[0]
        elif line.strip().startswith("known,"):
            percent, seconds = line.strip().split(",")[1:]
            found.setdefault(story, []).append((float(seconds), int(percent)))
    return {story: points for story, points in found.items() if points[-1][0] > 0}


def text(at_x, at_y, words, more=""):
    return f'<text x="{at_x:.0f}" y="{at_y:.0f}" {more}>{words}</text>'


def main():
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
          'font-family="sans-serif" font-size="12" fill="#444">')
    print(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>')
    for percent in range(0, 101, 25):
        print(f'<path d="M{x(0)} {y(percent)}H{x(SECONDS)}" stroke="#ddd"/>')
        print(text(LEFT - 8, y(percent) + 4, f"{percent} %", 'text-anchor="end"'))
    for seconds in range(0, SECONDS + 1, 10):
        print(text(x(seconds), HEIGHT - BOTTOM + 18, f"{seconds} s", 'text-anchor="middle"'))
    for i, (story, points) in enumerate(curves(sys.stdin).items()):
        path = " ".join(f"L{x(seconds):.1f} {y(percent):.1f}" for seconds, percent in points)
        print(f'<path d="M{x(0)} {y(0)} {path}" fill="none" stroke="{COLOURS[i % 5]}" '
              'stroke-width="2"/>')
        print(text(x(52), y(40 - 9 * i), story.replace("_", " "), f'style="fill:{COLOURS[i % 5]}"'))
    print("</svg>")


if __name__ == "__main__":
    main()
