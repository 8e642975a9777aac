"""Curves of long runs, from files of `ferry watch`: what the terminal, pages, CSV and TensorBoard show of them. No torch.

| module        | holds                                                                                     |
|---------------|-------------------------------------------------------------------------------------------|
| `runs.py`     | a file as columns: its series, its steps, the figures of any steps as arrays              |
| `trends.py`   | one or two runs thinned for a picture, with their difference, spikes, first NaN           |
| `reports.py`  | what the formats share, and the tables of text, Markdown, XLSX; CSV with every figure     |
| `html.py`     | the page: data for the script, which draws what is chosen                                 |
| `live.py`     | writes the page anew while the program runs                                               |
| `events.py`   | event files of TensorBoard                                                                |
"""
