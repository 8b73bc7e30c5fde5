"""How late a message may be delivered again."""

LATEST_REDELIVERY_SECONDS = 40 * 86_400
"""
Longer than the longest redelivery: 14 days in a queue, 10.4 days of retries (1,000 of 900 seconds), and 14
days in the dead-letter queue, before a person sends the message again.
"""
