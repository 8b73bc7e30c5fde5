"""
AWS's own local servers, in place of embedded endpoints; `steponce up` starts them, too.

    aws                      starts DynamoDB Local and Step Functions Local with a stack
    supervisor               runs one command for as long as its standard input stays open
    DynamoDBOnLoopback.java  DynamoDB Local on the loopback interface alone
"""
