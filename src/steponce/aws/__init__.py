"""
AWS as its API is: errors, items, times and rates, whatever they are used for.

    errors    classifies AWS errors as transient or permanent
    dynamodb  reads DynamoDB items attribute by attribute
    times     UTC text, as every record and envelope carries times
    pace      a token bucket that limits the rate of calls
"""
